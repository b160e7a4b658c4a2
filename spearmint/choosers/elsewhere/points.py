"""The points of a search that looks elsewhere after it has converged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, filterfalse
from typing import TYPE_CHECKING, Protocol

import numpy as np

from spearmint.choosers.elsewhere.convergence import are_at, is_negligible
from spearmint.choosers.elsewhere.restarts import Restarts, may_begin
from spearmint.choosers.history import History, with_pending
from spearmint.choosers.rungs import rungs_of

if TYPE_CHECKING:
    from spearmint.acquisition.next_point import OnFit
    from spearmint.gp.numerics import Array

# Maximum number of trials with restarts: above it, a model does not see all trials.
_MOST_TRIALS = 1000
# A restart needs its first points, and at least this many more for each dimension.
_LEAST = 2
# It gets at least half of the trials, and seven of eight if the known minimum gains nothing.
_SHARE = 0.75


class Points(Protocol):
    """Yields the points that a model proposes, as ``GPEIOptChooser.best_points``."""

    def __call__(
        self, past: History, rngs: Iterator[np.random.Generator], on_fit: OnFit | None = None
    ) -> Iterator[Array]:
        """Yield one point for each of ``rngs``."""
        ...


@dataclass(frozen=True)
class Model:
    """The model of a chooser, and its search.

    Attributes:
        seed: Seed of the chooser.
        n_initial: Number of points before the first model of a restart.
        left: Number of trials that are left; infinite if it is not known.
        rng: Returns the source of randomness of a trial.
        points: Yields proposals.
        note: Receives messages for the user.
        mark: Receives the number of the restart, from 1, of the point that is yielded next.
    """

    seed: int
    n_initial: int
    left: float
    rng: Callable[[int], np.random.Generator]
    points: Points
    note: Callable[[str], None]
    mark: Callable[[int], None]

    def has_time(self, n_dimensions: int) -> bool:
        """Return whether enough trials are left for another restart."""
        return self.left * _SHARE >= self.n_initial + _LEAST * n_dimensions


def points_with_restarts(model: Model, past: History, number: int) -> Iterator[Array] | None:
    """Return an iterator of the points of trials ``number`` and later.

    None if no trial of a restart is among them: the points are those of the model of all trials.
    """
    if not _is_possible(past):
        return None
    restarts = Restarts(past, model.seed)
    if restarts.count and not restarts.has_lowest:
        return _shared(model, restarts, number)
    if model.has_time(len(past.space)) and restarts.has_settled:
        return _unless_converged(model, restarts, number)
    return None


def _is_possible(past: History) -> bool:
    """Return whether the rules hold: one objective, nothing else, and infinitely many points."""
    space = past.space
    is_plain = not space.conditions and not space.linear and np.isinf(space.n_points)
    is_single = past.losses.shape[1] == 1 and not past.guesses
    has_limits = len(past.infeasible) or any(trial.constraints for trial in past.trials)
    # Values at rungs are estimates, which change with every trial.
    is_whole = all(rungs_of(trial) is None for trial in past.trials)
    is_small = len(past.tried) <= _MOST_TRIALS
    return bool(is_plain and is_single and not has_limits and is_whole and is_small)


def _unless_converged(model: Model, restarts: Restarts, number: int) -> Iterator[Array]:
    """Yield the points of the model; if it expects nothing more, begin a restart instead.

    A batch can begin with a trial that cannot be the first of a restart: the next one is.
    """
    converged: list[bool] = []

    def on_fit(log_improvement: float, is_exact: bool) -> None:
        converged.append(is_exact and is_negligible(log_improvement))

    points = model.points(restarts.past, map(model.rng, count(number)), on_fit)
    point = next(points)
    if not may_begin(number):
        yield point
        restarts = Restarts(with_pending(restarts.past, point), model.seed)
        model, number = replace(model, left=model.left - 1), number + 1
        if not converged[0] or not model.has_time(len(point)):
            yield from points
            return
    elif not converged[0]:
        yield point
        yield from points
        return
    first = restarts.first_of_next
    model.note(
        f"The search has converged. From trial {number + 1} on, most trials look elsewhere: they "
        "start from new points and ignore the earlier trials."
    )
    model.mark(restarts.count + 1)
    yield first
    after = Restarts(with_pending(restarts.past, first), model.seed)
    yield from _shared(replace(model, left=model.left - 1), after, number + 1)


def _shared(model: Model, restarts: Restarts, number: int) -> Iterator[Array]:
    """Yield points of the model of all trials, and of restarts, by trial number."""
    known = filter(restarts.is_known, count(number))
    at_known = model.points(restarts.past, map(model.rng, known))
    at_others = _elsewhere(model, restarts, number)
    for n in count(number):
        yield next(at_known if restarts.is_known(n) else at_others)


def _elsewhere(model: Model, restarts: Restarts, number: int) -> Iterator[Array]:
    """Yield points of the current restart, or of the next one if it is over."""
    for n in filterfalse(restarts.is_known, count(number)):
        point = _next_of(model, restarts, n)
        later = replace(model, left=model.left - (n - number))
        if point is None and later.has_time(len(restarts.past.space)):
            point = restarts.first_of_next
            model.mark(restarts.count + 1)
            model.note(
                f"Restart {restarts.count} found no better minimum. Trial {n + 1} begins another."
            )
        elif point is None:  # nothing to look for, so the last digits of the known minimum
            point = next(model.points(restarts.past, iter([model.rng(n)])))
        else:
            model.mark(restarts.count)
        yield point
        restarts = Restarts(with_pending(restarts.past, point), model.seed)


def _next_of(model: Model, restarts: Restarts, number: int) -> Array | None:
    """Return the point that the current restart proposes: a Sobol point at first.

    None if it is over.
    """
    current = restarts.current
    n = len(current.points)
    if n < 2 or n + len(current.pending) < model.n_initial:
        return restarts.untried(n + len(current.pending))
    if restarts.has_settled or restarts.leads_back:
        return None
    point = next(model.points(current, iter([model.rng(number)])))
    return None if are_at(point[None], restarts.minima)[0] else point
