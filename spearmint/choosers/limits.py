"""Constraints with measured values: one Gaussian process for each, on the value.

A trial has a gap for each constraint: how far its value is above the limit, at most 0 if the trial
is feasible. These are the constraints of Optuna's trials. The acquisition is the expected
improvement below the best feasible trial times the probabilities that the gaps are at most 0:
Schonlau, Welch and Jones 1998 (New Developments and Applications in Experimental Design, p. 11);
Gelbart, Snoek and Adams 2014 (arXiv:1403.5607), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spearmint.choosers.history import History, with_pending
from spearmint.choosers.learning import model_of

if TYPE_CHECKING:
    from spearmint.acquisition.maximize import Acquisition
    from spearmint.gp.numerics import Array
    from spearmint.gp.settings import Settings

# Maximum number of trials in the model of a constraint: its memory grows with the square.
_MOST = 1000
# While no trial is feasible, a running trial counts as infeasible by this many standard deviations,
# unless the model predicts worse. Otherwise all concurrent trials would have the same point.
_PESSIMISM = 0.1
_GLOBAL, _STARTS, _EVALUATIONS, _NEAR = 1024, 8, 60, 5


@dataclass(frozen=True)
class Limits:
    """The gaps of the trials of a History.

    Attributes:
        points: Coordinates of the trials with gaps, shape ``(k, D)``.
        gaps: Their gaps by constraint, NaN if unknown, shape ``(k, C)``.
        excess: For each of ``History.points``: the sum of its gaps above 0, each divided by the
            largest of its constraint; infinite without gaps, shape ``(n,)``.
    """

    points: Array
    gaps: Array
    excess: Array

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which of ``History.points`` are known to be feasible, shape ``(n,)``."""
        return self.excess <= 0.0


def limits_of(past: History) -> Limits | None:
    """Return the gaps of the trials of ``past``; None if no trial has any."""
    trials = (*past.trials, *past.unvalued)
    known = [trial.constraints for trial in trials]
    names = sorted({name for gaps in known for name in gaps})
    if not names:
        return None
    gaps = _finite(np.array([[each.get(name, np.nan) for name in names] for each in known]))
    above = np.where(np.isnan(gaps), 0.0, np.maximum(gaps, 0.0))
    relative = above / np.maximum(above.max(axis=0), np.finfo(float).tiny)
    has_any = ~np.isnan(gaps).all(axis=1)
    excess = np.where(has_any, relative.sum(axis=1), np.inf)
    return Limits(past.tried[has_any], gaps[has_any], excess[: len(past.points)])


def _finite(gaps: Array) -> Array:
    """Return ``gaps`` with infinities replaced by the extreme finite values, or by 1 and -1."""
    for column in gaps.T:
        finite = column[np.isfinite(column)]
        high, low = max(finite.max(initial=0.0), 0.0), min(finite.min(initial=0.0), 0.0)
        column[column == np.inf] = high or 1.0
        column[column == -np.inf] = low or -1.0
    return gaps


def constrained_points(
    past: History,
    limits: Limits,
    settings: Settings,
    rngs: Iterator[np.random.Generator],
    factor: Acquisition | None,
) -> Iterator[Array]:
    """Yield the points with the largest expected constrained improvement.

    While no trial is feasible, yield points that are most probably feasible.

    Args:
        past: The trials.
        limits: Their gaps.
        settings: Settings of the model and the search.
        rngs: Source of randomness, one for each point.
        factor: Logarithm of another factor of the expected improvement.
    """
    from spearmint.acquisition.factors import Sum
    from spearmint.acquisition.next_point import KEPT_OBSERVATIONS, MAX_OBSERVATIONS, next_points
    from spearmint.gp.fit import recent_subset

    if not limits.feasible.any():
        yield from most_feasible(past, limits, settings, rngs)
        return
    rng = next(rngs)
    product = feasibility(past, limits, settings, rng)
    given = [each for each in (product, factor) if each is not None]
    product = reduce(Sum, given) if given else None
    points, y, feasible = past.points, past.y, limits.feasible
    if len(y) > MAX_OBSERVATIONS:
        rank = np.argsort(np.lexsort((y, limits.excess))).astype(float)
        kept = recent_subset(rank, KEPT_OBSERVATIONS, rng)
        points, y, feasible = points[kept], y[kept], feasible[kept]
    every = _chain(rng, rngs)
    yield from next_points(
        past.space,
        points,
        y,
        past.pending,
        settings,
        every,
        factor=product,
        feasible=feasible,
        model=model_of(past),
    )


def _chain(
    first: np.random.Generator, others: Iterator[np.random.Generator]
) -> Iterator[np.random.Generator]:
    yield first
    yield from others


def feasibility(
    past: History, limits: Limits, settings: Settings, rng: np.random.Generator
) -> Acquisition | None:
    """Return the log of the product of the probabilities; None if the gaps have no information.

    While no trial is feasible, running trials count as infeasible.
    """
    from spearmint.acquisition.factors import LogFeasibility, Sum
    from spearmint.gp.fit import fit, some
    from spearmint.gp.numerics import one_blas_thread

    settings = replace(settings, noiseless=False, warp=False, input_warp=False)
    none = past.pending[:0]
    factors: list[Acquisition] = []
    for gaps in limits.gaps.T:
        known = np.flatnonzero(~np.isnan(gaps))
        known = known[some(len(known), _MOST, rng)]
        points, labels = limits.points[known], -bilog(gaps[known])
        if len(known) < 2 or not labels.std() > 0.0:
            continue
        with one_blas_thread():
            posterior = fit(past.space, points, labels, none, settings, rng)
            if len(past.pending) and not limits.feasible.any():
                mean, std = labels.mean(), labels.std()
                believed = posterior.predict(past.pending)[0].mean(axis=(0, 2)) * std + mean
                points = np.concatenate((points, past.pending))
                labels = np.concatenate((labels, np.minimum(believed, -_PESSIMISM * std)))
                posterior = fit(past.space, points, labels, none, settings, rng)
        factors.append(LogFeasibility(posterior, zero=-float(labels.mean() / labels.std())))
    return reduce(Sum, factors) if factors else None


def bilog(gaps: Array) -> Array:
    """Return sign(g) log(1 + abs(g) / m), where m is the median of abs(g): large gaps count less.

    Source: Eriksson and Poloczek 2021 (arXiv:2002.08526), section 3, with the unit m.
    """
    size = np.abs(gaps)
    unit = float(np.median(size[size > 0.0])) if (size > 0.0).any() else 1.0
    return np.asarray(np.sign(gaps) * np.log1p(size / unit))


def most_feasible(
    past: History, limits: Limits, settings: Settings, rngs: Iterator[np.random.Generator]
) -> Iterator[Array]:
    """Yield the points that are most probably feasible, each as if those before it were not."""
    from spearmint.acquisition.maximize import candidates, maximize
    from spearmint.acquisition.next_point import first_new
    from spearmint.gp.numerics import one_blas_thread

    space = past.space
    for rng in rngs:
        product = feasibility(past, limits, settings, rng)
        near = past.points[np.lexsort((past.y, limits.excess))[:_NEAR]]
        pool = candidates(space, near, rng, n_global=_GLOBAL)
        if product is not None:
            with one_blas_thread():
                pool = maximize(
                    product, space, pool, rng, n_starts=_STARTS, max_evaluations=_EVALUATIONS
                )
        point = first_new(space, pool, np.concatenate((past.tried, past.pending)), rng)
        yield point
        past = with_pending(past, point)
