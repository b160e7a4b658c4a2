"""The next points of a search, a function of the observations, pending points and seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spearmint.acquisition.batch import Pool
from spearmint.acquisition.factors import Sum
from spearmint.acquisition.grid import rank_grid
from spearmint.acquisition.log_ei import LogEI, NegativeMean
from spearmint.acquisition.maximize import SAME, Acquisition, candidates, finish, maximize
from spearmint.acquisition.prior import LogPrior
from spearmint.acquisition.replicates import Replicates
from spearmint.feasible import draws
from spearmint.gp.fit import fit, recent_subset
from spearmint.gp.numerics import Array, one_blas_thread
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Space, distance, levels

# Above 1000 observations, the model is fitted to 500 of them: the time to factorise the covariance
# grows with the cube.
MAX_OBSERVATIONS, KEPT_OBSERVATIONS = 1000, 500
# Maximum number of running trials in the model, half of them the last to start. The points of a
# batch always know each other.
MAX_PENDING = 300
# A space with at most this many points is enumerated to find an untried point.
_FEW_POINTS = 4096
# With noise, points near the best point cannot be distinguished from it, so trials there gain
# nothing. This fraction of the proposals requires a margin, which leads to points where the model
# is uncertain: this many standard deviations of the noise that the model has learned, at most 0.2
# standard deviations of the (warped) objective. Without noise a margin would only delay the search.
_WIDE_SHARE = 0.2
_WIDE_NOISES = 2.0
_WIDE_MARGIN = 0.2
# Without noise the last digits matter, and expected improvement gains them slowly: it explores
# around a minimum, and alternates between minima that look equally low. When it is below this many
# standard deviations of the (warped) objective, this fraction of the proposals is the point with
# the lowest mean. On Branin's function (40 trials, 20 searches) this reduced regret from 1.6e-4 to
# 1.4e-5. It is not used with categories or few levels: there, 2 of 30 searches stayed in the second
# best category, and none did without it.
_POLISH_BELOW = 0.003
_POLISH_SHARE = 0.5
_POLISH_EVALUATIONS = 40
# There is no noise if it was declared (``noiseless``), or if the model has learned less than this.
_NO_NOISE = 0.003
# A point closer than this to a tried point is not worth a trial.
_POLISHED = 1e-5
# Number of hyperparameter samples for the first ranking of the candidates.
_ROUGH_SAMPLES = 3
# Number of random points in which to look for an untried one under linear constraints.
_DRAWN = 256
# Number of candidates for all points of a batch after the first.
_POOL = 1024

Model: TypeAlias = Callable[[Space, Array, Array, Array, Settings, np.random.Generator], Posterior]
"""Fits a model as :func:`spearmint.gp.fit.fit` does."""
OnFit = Callable[[float, bool], None]
"""Receives the log of the largest expected improvement, in standard deviations of the (warped)
objective, and whether there is no noise."""


def next_points(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rngs: Iterable[np.random.Generator],
    *,
    factor: Acquisition | None = None,
    feasible: NDArray[np.bool_] | None = None,
    prior: LogPrior | None = None,
    model: Model | None = None,
    on_fit: OnFit | None = None,
    replicates: Replicates | None = None,
) -> Iterator[Array]:
    """Yield valid points to evaluate next, shape ``(D,)``, from one fit of the model.

    Each point is chosen when it is asked for, as if the points before it were running.

    Args:
        space: The D dimensions.
        points: Observed points, shape ``(n, D)``, n >= 1.
        y: Finite observations, shape ``(n,)``, to be minimised.
        pending: Points without a result yet, shape ``(p, D)``.
        settings: Settings of the model and the search.
        rngs: Source of all randomness, one for each point: the same states give the same points.
        factor: Logarithm of a factor of the expected improvement.
        feasible: The observations with which a point must compare, shape ``(n,)``; at most
            ``MAX_OBSERVATIONS`` with at least one. None for all.
        prior: The user's guess where the best point is.
        model: Fits the model of the objective; None for ``fit``.
        on_fit: Called after the fit, before the first point.
        replicates: The points that can be repeated under noise; None for none.
    """
    seen = np.concatenate((points, pending))
    posterior, pool, ranked = None, None, np.empty((0, len(space)))
    for rng in rngs:
        with one_blas_thread():
            if posterior is None:
                posterior, best = _fitted(
                    space, points, y, pending, settings, rng,
                    feasible=feasible, prior=prior, model=model or fit,
                )  # fmt: skip
                ranked = _first(space, best, posterior, seen, settings, rng, factor, prior, on_fit)
            else:
                pool = pool or Pool(posterior, ranked[:_POOL], _product(factor, prior))
                pool.add(seen[-1], settings.pending_samples, rng)
                margin, refine = _margin(pool.posterior, settings, rng), not settings.grid_size
                ranked = pool.ranked(space, rng, margin=margin, refine=refine)
            point = first_new(space, ranked, seen, rng)
            if replicates is not None:
                point = replicates.instead_of(point, pool.posterior if pool else posterior)
        yield point
        seen = np.concatenate((seen, point[None]))


def _fitted(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
    *,
    feasible: NDArray[np.bool_] | None,
    prior: LogPrior | None,
    model: Model,
) -> tuple[Posterior, Array]:
    """Return the posterior, and points near which the next one is searched."""
    if len(y) > MAX_OBSERVATIONS:
        kept = recent_subset(y, KEPT_OBSERVATIONS, rng)
        points, y = points[kept], y[kept]
    posterior = model(space, points, y, _some_pending(pending, rng), settings, rng)
    best = points[np.argsort(y, kind="stable")[:5]]
    if space.linear:
        feasible = _inside(space, points, feasible)
    if feasible is not None:
        posterior = posterior.compared_with(points[feasible])
        best = points[np.lexsort((y, ~feasible))[:5]]
    if prior is not None:
        best = np.concatenate((best, prior.moved(best[:2])))
    return posterior, best


def _inside(
    space: Space, points: Array, feasible: NDArray[np.bool_] | None
) -> NDArray[np.bool_] | None:
    """Return those of ``feasible`` that meet the linear constraints; None for all."""
    inside = space.meets(points, loose=True)
    inside = inside if feasible is None else inside & feasible
    return inside if inside.any() and not inside.all() else feasible


def _product(factor: Acquisition | None, prior: LogPrior | None) -> Acquisition | None:
    if factor is None or prior is None:
        return factor or prior
    return Sum(factor, prior)


def _some_pending(pending: Array, rng: np.random.Generator) -> Array:
    """Return at most MAX_PENDING rows of ``pending``: the last ones and others at random."""
    if len(pending) <= MAX_PENDING:
        return pending
    first = len(pending) - MAX_PENDING // 2
    others = rng.choice(first, MAX_PENDING - MAX_PENDING // 2, replace=False)
    return np.concatenate((pending[np.sort(others)], pending[first:]))


def next_point(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
    *,
    factor: Acquisition | None = None,
    feasible: NDArray[np.bool_] | None = None,
) -> Array:
    """Return the first of :func:`next_points`."""
    more = next_points(space, points, y, pending, settings, [rng], factor=factor, feasible=feasible)
    return next(more)


def _margin(posterior: Posterior, settings: Settings, rng: np.random.Generator) -> float:
    """Return the least improvement that counts for a proposal."""
    wide = not settings.noiseless and rng.random() < _WIDE_SHARE
    return min(_WIDE_MARGIN, _WIDE_NOISES * posterior.noise_sd) if wide else 0.0


def _first(
    space: Space,
    best: Array,
    posterior: Posterior,
    seen: Array,
    settings: Settings,
    rng: np.random.Generator,
    factor: Acquisition | None,
    prior: LogPrior | None,
    on_fit: OnFit | None = None,
) -> Array:
    """Return valid points for the first point of a batch, best first."""
    margin = _margin(posterior, settings, rng)
    acquisition: Acquisition = LogEI(posterior, margin=margin)
    rough: Acquisition = LogEI(posterior.thinned(_ROUGH_SAMPLES), margin=margin)
    if (both := _product(factor, prior)) is not None:
        acquisition, rough = Sum(acquisition, both), Sum(rough, both)
    ranked = _ranked(space, best, acquisition, posterior, settings, rng, rough=rough)
    exact = settings.noiseless or posterior.noise_sd < _NO_NOISE
    left = acquisition(ranked[:1])[0] - (prior(ranked[:1])[0] if prior is not None else 0.0)
    if on_fit is not None:
        on_fit(float(left), exact)
    converged = left < np.log(_POLISH_BELOW)
    plain = factor is None and not settings.grid_size and not len(space.fixed)
    if exact and plain and converged and rng.random() < _POLISH_SHARE:
        starts = np.concatenate((ranked[:4], best[:2]))
        ranked = np.concatenate((_lowest_mean(space, posterior, starts, seen), ranked))
    return ranked


def _lowest_mean(space: Space, posterior: Posterior, starts: Array, seen: Array) -> Array:
    """Return the point with the lowest mean, refined from ``starts``: one row, none if tried."""
    height = NegativeMean(posterior)
    if space.linear:
        starts = starts[space.meets(starts)]
    ends = space.snap(finish(height, space, starts, _POLISH_EVALUATIONS))
    lowest = ends[[np.argmax(height(ends))]]
    return lowest if distance(lowest, seen).min() > _POLISHED else lowest[:0]


def first_new(space: Space, ranked: Array, seen: Array, rng: np.random.Generator) -> Array:
    """Return the first row of ``ranked`` that is not in ``seen``, or else another valid point."""
    for points in (ranked, _all_points(space, rng)):
        for point in points if not space.linear else points[space.meets(points)]:
            if not len(seen) or distance(point[None], seen).min() > SAME:
                return np.asarray(point)
    if space.linear:
        return _drawn(space, seen, rng)
    return np.asarray(space.from_cube(rng.random((1, len(space))))[0])


def _drawn(space: Space, seen: Array, rng: np.random.Generator) -> Array:
    """Return a random feasible point; one that is not in ``seen`` if one of many draws is new."""
    drawn = draws(space, rng, _DRAWN)
    new = distance(drawn, seen).min(axis=1) > SAME if len(seen) else np.ones(_DRAWN, dtype=bool)
    return np.asarray(drawn[np.argmax(new)])


def _all_points(space: Space, rng: np.random.Generator) -> Array:
    """Return all valid points of a small space in random order; no points of a large space."""
    if space.n_points > _FEW_POINTS:
        return np.empty((0, len(space)))
    every = np.array(list(product(*(levels(d) for d in space.dimensions))))
    every = np.unique(space.settle(every), axis=0) if space.conditions else every
    return rng.permutation(every)


def _ranked(
    space: Space,
    best: Array,
    acquisition: Acquisition,
    posterior: Posterior,
    settings: Settings,
    rng: np.random.Generator,
    *,
    rough: Acquisition | None = None,
) -> Array:
    """Return valid points in descending order of ``acquisition``.

    Some candidates are near the rows of ``best``. ``rough`` is a cheaper acquisition for a first
    ranking.
    """
    n, warp = len(posterior.points), posterior.input_warp
    if settings.grid_size:
        grid_size = settings.grid_size
        return rank_grid(acquisition, space, rng, n_points=grid_size, input_warp=warp)
    # About 150 000 kernel entries per sample, for any n.
    n_global = 1 << int(np.clip(np.round(np.log2(150_000 / n)), 8, 11))
    return maximize(
        acquisition,
        space,
        candidates(space, best, rng, n_global=n_global, input_warp=warp),
        rng,
        n_starts=settings.grid_subset,
        max_evaluations=60 if n < 300 else 25,
        rough=rough,
    )
