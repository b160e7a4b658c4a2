"""The restarts of a search, found in its trials, so that a killed search resumes them.

Restart k begins with a point that depends only on k and the seed: a trial there shows that it has
begun, and when. Later trials are shared by their numbers: odd ones belong to the restart, multiples
of eight to the known minimum, and the other even ones to the known minimum as long as the trials
there still gain, and after a few restarts. Of these, the ones near the known minimum do not count
as trials of the restart.

Source: restarts without memory are those of multistart and of TuRBO, Eriksson et al. 2019
(arXiv:1910.01739), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from spearmint.acquisition.maximize import SAME
from spearmint.choosers.elsewhere.basins import is_in_basin
from spearmint.choosers.elsewhere.convergence import are_at, has_settled
from spearmint.choosers.history import History
from spearmint.choosers.sobol import sobol_point
from spearmint.gp.numerics import Array
from spearmint.gp.space import distance

# Every eighth trial belongs to the known minimum.
_PERIOD = 8
# The known minimum gains if its last trials lowered it by more than this share of the spread.
_LAST, _GAIN = 5, 3e-5
# After this many restarts there is probably no other minimum.
_SOUGHT = 2
# A restart can be in a known basin if its best value is in this part of the spread.
_LOW = 0.6
# Points within this many times the distance of ``are_at`` are near a minimum.
_AROUND = 5.0
# Seed of the Sobol points of restarts.
_RESTART = 0x5EA2C4


def may_begin(number: int) -> bool:
    """Return whether trial ``number`` belongs to a restart in any case, and can be its first."""
    return number % 2 == 1


@lru_cache(maxsize=256)  # each proposal looks for the first points of all restarts
def _cube(seed: int, index: int, n_dimensions: int) -> Array:
    return sobol_point(seed, index, n_dimensions)


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
        cube = _cube(
            (self.seed + _RESTART * (restart + 1)) % (1 << 63), index, len(self.past.space)
        )
        return np.asarray(self.past.space.from_cube(cube[None])[0])

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

    def untried(self, index: int) -> Array:
        """Return the first Sobol point of the current restart from ``index`` that is not tried."""
        while True:
            point = self.point(self.count - 1, index)
            if self._number_at(point) is None:
                return point
            index += 1

    def _number_at(self, point: Array) -> int | None:
        """Return the number of the finished trial at ``point``, -1 for a running one, or None."""
        at = np.flatnonzero(distance(self.past.points, point[None])[:, 0] <= SAME)
        if len(at):
            return int(self._numbers[at[0]])
        return -1 if (distance(self.past.pending, point[None]) <= SAME).any() else None

    @cached_property
    def _numbers(self) -> NDArray[np.intp]:
        return np.array([trial.number for trial in self.past.trials], dtype=np.intp)

    def _rows(self, first: int, last: float = np.inf) -> NDArray[np.intp]:
        """Return the rows of the trials from number ``first`` until before ``last``, by number."""
        order = np.argsort(self._numbers, kind="stable")
        numbers = self._numbers[order]
        return order[(numbers >= first) & (numbers < last)]

    def _rows_of(self, restart: int) -> NDArray[np.intp]:
        """Return the rows of the trials of a restart, by number; none if its first one runs."""
        start = self.starts[restart]
        if start < 0:
            return self._rows(0, 0)
        later = [other for other in self.starts[restart + 1 :] if other >= 0]
        rows = self._rows(start, min(later, default=np.inf))
        numbers, best = self._numbers[rows], self._best_before(start)
        is_near = are_at(self.past.points[rows], self.past.points[best], _AROUND)
        is_of = (numbers % 2 == 1) | ((numbers % _PERIOD != 0) & ~is_near)
        return np.asarray(rows[is_of])

    def _best_before(self, number: float) -> NDArray[np.intp]:
        """Return the row of the best trial before ``number``, shape ``(1,)``; empty for none."""
        rows = self._rows(0, number)
        return rows[[np.argmin(self.past.y[rows])]] if len(rows) else rows

    def is_known(self, number: int) -> bool:
        """Return whether trial ``number`` belongs to the known minimum."""
        is_sought = self.count <= _SOUGHT and not self._gains
        return not may_begin(number) and (number % _PERIOD == 0 or not is_sought)

    @cached_property
    def _gains(self) -> bool:
        """Whether the last trials that do not belong to a restart lowered the best of them."""
        others = [row for k in range(self.count) for row in self._rows_of(k)]
        rows, y = self._rows(0), self.past.y
        known = y[rows[~np.isin(rows, others)]]
        is_far = ~are_at(self.past.points, self.past.points[[np.argmin(y)]], _AROUND)
        if len(known) <= _LAST or not is_far.any():
            return True
        spread = np.median(y[is_far]) - y.min()
        return bool(known[:-_LAST].min() - known.min() > _GAIN * spread)

    @cached_property
    def minima(self) -> Array:
        """The minima that were known when the current restart began, shape ``(k, D)``.

        For each restart, they are the best of all trials before it, and of the restart before it.
        """
        rows: list[int] = []
        for k, start in enumerate(self.starts):
            rows += self._best_before(start if start >= 0 else np.inf).tolist()
            if k and len(others := self._rows_of(k - 1)):
                rows.append(int(others[np.argmin(self.past.y[others])]))
        return self.past.points[np.unique(np.array(rows, dtype=np.intp))]

    @cached_property
    def current(self) -> History:
        """The trials of the current restart; running trials at known minima do not count.

        Earlier searches lead to the known minimum, so their models do not count, either.
        """
        rows, past = self._rows_of(self.count - 1), self.past
        return replace(
            past,
            points=past.points[rows],
            losses=past.losses[rows],
            trials=tuple(past.trials[i] for i in rows),
            pending=past.pending[~are_at(past.pending, self.minima)],
            ensemble=None,
        )

    @cached_property
    def has_lowest(self) -> bool:
        """Whether the best of all trials is not at a minimum that was known before."""
        best = self.past.points[[np.argmin(self.past.y)]]
        return bool(self.count) and not are_at(best, self.minima)[0]

    @property
    def leads_back(self) -> bool:
        """Whether the best point of the current restart is in the basin of a known minimum."""
        y, low = self.current.y, float(self.past.y.min())
        spread = float(np.median(y)) - low
        if not y.min() - low <= _LOW * spread:
            return False
        best = self.current.points[int(np.argmin(y))]
        return is_in_basin(self.past, best, self.minima, spread)

    @property
    def has_settled(self) -> bool:
        """Whether the current restart has converged; without one, all trials."""
        if not self.count:
            rows = self._rows(0)
        elif self.has_lowest:
            rows = self._rows(max(self.starts))
        else:
            rows = self._rows_of(self.count - 1)
        return has_settled(self.past.points[rows], self.past.y[rows])
