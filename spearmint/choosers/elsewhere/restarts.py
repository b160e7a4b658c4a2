"""The restarts of a search, found in its trials, so that a killed search resumes them.

Restart k begins with a point that depends only on k and the seed: a trial there shows that it has
begun, and when. Of the later trials, every third number belongs to the known minimum, and the
others to the restart.

Source: restarts without memory are those of multistart and of TuRBO, Eriksson et al. 2019
(arXiv:1910.01739), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spearmint.acquisition.maximize import SAME
from spearmint.choosers.elsewhere.convergence import are_at, has_settled
from spearmint.choosers.history import History
from spearmint.choosers.sobol import sobol_point
from spearmint.gp.numerics import Array
from spearmint.gp.space import distance

PERIOD = 3
"""One of this many trials belongs to the known minimum once there is a restart."""
# Seed of the Sobol points of restarts.
_RESTART = 0x5EA2C4


def is_elsewhere(number: int) -> bool:
    """Return whether trial ``number`` belongs to a restart, if there is one."""
    return number % PERIOD != 0


@dataclass(frozen=True)
class Restarts:
    """The restarts of a search; the last one is the current one.

    Attributes:
        past: All trials.
        seed: Seed of the chooser.
    """

    past: History
    seed: int

    def point(self, restart: int, index: int) -> Array:
        """Return Sobol point ``index`` of a restart; it begins with point 0."""
        seed = (self.seed + _RESTART * (restart + 1)) % (1 << 63)
        cube = sobol_point(seed, index, len(self.past.space))[None]
        return np.asarray(self.past.space.from_cube(cube)[0])

    @cached_property
    def starts(self) -> list[int]:
        """The number of the first trial of each restart, -1 while it runs."""
        found: list[int] = []
        while (number := self._number_at(self.point(len(found), 0))) is not None:
            found.append(number)
        return found

    @property
    def count(self) -> int:
        """Number of restarts that have begun."""
        return len(self.starts)

    @property
    def first_of_next(self) -> Array:
        """The point with which another restart begins."""
        return self.point(self.count, 0)

    def _number_at(self, point: Array) -> int | None:
        """Return the number of the finished trial at ``point``, -1 for a running one, or None."""
        at = np.flatnonzero(distance(self.past.points, point[None])[:, 0] <= SAME)
        if len(at):
            return int(self._numbers[at[0]])
        return -1 if (distance(self.past.pending, point[None]) <= SAME).any() else None

    @cached_property
    def _numbers(self) -> NDArray[np.intp]:
        return np.array([trial.number for trial in self.past.trials], dtype=np.intp)

    def _rows(
        self, first: int, last: float = np.inf, *, elsewhere: bool = False
    ) -> NDArray[np.intp]:
        """Return the rows of the trials from number ``first`` until before ``last``, by number."""
        order = np.argsort(self._numbers, kind="stable")
        numbers = self._numbers[order]
        is_in = (numbers >= first) & (numbers < last)
        return order[is_in & (numbers % PERIOD != 0) if elsewhere else is_in]

    @cached_property
    def _current(self) -> NDArray[np.intp]:
        """The rows of the trials of the current restart."""
        start = self.starts[-1]
        return self._rows(start, elsewhere=True) if start >= 0 else self._rows(0, 0)

    @cached_property
    def minima(self) -> Array:
        """The minima that were known when the current restart began, shape ``(k, D)``.

        For each restart, they are the best of all trials before it, and of the restart before it.
        """
        rows: list[int] = []
        for k, start in enumerate(self.starts):
            end = start if start >= 0 else np.inf
            before = self._rows(0, end)
            parts = [before]
            if k and self.starts[k - 1] >= 0:
                parts.append(self._rows(self.starts[k - 1], end, elsewhere=True))
            rows += [int(part[np.argmin(self.past.y[part])]) for part in parts if len(part)]
        return self.past.points[np.unique(np.array(rows, dtype=np.intp))]

    @cached_property
    def current(self) -> History:
        """The trials of the current restart; running trials at known minima do not count."""
        rows, past = self._current, self.past
        return replace(
            past,
            points=past.points[rows],
            losses=past.losses[rows],
            trials=tuple(past.trials[i] for i in rows),
            pending=past.pending[~are_at(past.pending, self.minima)],
        )

    @cached_property
    def has_lowest(self) -> bool:
        """Whether the best of all trials is not at a minimum that was known before."""
        best = self.past.points[[np.argmin(self.past.y)]]
        return bool(self.count) and not are_at(best, self.minima)[0]

    @property
    def has_settled(self) -> bool:
        """Whether the current restart has converged; without one, all trials."""
        if not self.count:
            rows = self._rows(0)
        elif self.has_lowest:
            rows = self._rows(max(self.starts))
        else:
            rows = self._current
        return has_settled(self.past.points[rows], self.past.y[rows])
