"""The next point of a search: from observations, pending points and a seed, nothing else."""

from __future__ import annotations

from itertools import product

import numpy as np

from spearmint.acquisition.factors import Sum
from spearmint.acquisition.grid import rank_grid
from spearmint.acquisition.log_ei import LogEI, NegativeMean
from spearmint.acquisition.maximize import SAME, Acquisition, candidates, climb, maximize
from spearmint.gp.fit import fit, subset
from spearmint.gp.numerics import Array, one_blas_thread
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Space, distance, levels

# More observations than this are thinned: a covariance of 2000 takes 32 MB a sample, and its
# factor's time grows with the cube.
MAX_OBSERVATIONS = 2000
# A space of no more points than this is listed whole to find one that was not tried.
_FEW_POINTS = 4096
# Under noise a better point near the best one cannot be told from it, so trials spent there gain
# nothing. This share of the proposals asks for this much more, in standard deviations of the
# (warped) objective, and so goes where the model is unsure. Without noise it only delays.
_WIDE_SHARE = 0.2
_WIDE_MARGIN = 0.2
# Without noise the last digits count. Expected improvement gains them slowly: it looks around a
# minimum, and by turns at minima as low as far as it can tell. Once it is below this many standard
# deviations of the (warped) objective, this share of the proposals is where the mean is lowest. On
# Branin's function (40 trials, 20 searches) regret fell from 1.6e-4 to 1.4e-5. Not among categories
# or few levels: there 2 of 30 searches stayed in the second best category, none without it.
_POLISH_BELOW = 0.003
_POLISH_SHARE = 0.5
_POLISH_EVALUATIONS = 40
# So near a point that was tried there is nothing left to polish.
_POLISHED = 1e-5
# Samples of the hyperparameters that rank the candidates first.
_ROUGH_SAMPLES = 3


def next_point(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
    *,
    factor: Acquisition | None = None,
) -> Array:
    """Return the legal point to evaluate next, shape ``(D,)``.

    Args:
        space: The D dimensions.
        points: Observed points, shape ``(n, D)``, n >= 1.
        y: Finite observations, shape ``(n,)``, to be minimised.
        pending: Points without a result yet, shape ``(p, D)``.
        settings: Effort and switches.
        rng: Source of all randomness: the same state gives the same point.
        factor: Logarithm of what the expected improvement is multiplied with.
    """
    seen = np.concatenate((points, pending))
    if len(y) > MAX_OBSERVATIONS:
        kept = subset(y, MAX_OBSERVATIONS, rng)
        points, y = points[kept], y[kept]
    with one_blas_thread():
        posterior = fit(space, points, y, pending, settings, rng)
        wide = not settings.noiseless and rng.random() < _WIDE_SHARE
        margin = _WIDE_MARGIN if wide else 0.0
        acquisition: Acquisition = LogEI(posterior, margin=margin)
        rough: Acquisition = LogEI(posterior.thinned(_ROUGH_SAMPLES), margin=margin)
        if factor is not None:
            acquisition, rough = Sum(acquisition, factor), Sum(rough, factor)
        best = points[np.argsort(y, kind="stable")[:5]]
        ranked = _ranked(space, best, acquisition, posterior, settings, rng, rough=rough)
        exact = settings.noiseless and factor is None and not settings.grid_size
        converged = acquisition(ranked[:1])[0] < np.log(_POLISH_BELOW)
        if exact and converged and not len(space.fixed) and rng.random() < _POLISH_SHARE:
            starts = np.concatenate((ranked[:4], best[:2]))
            ranked = np.concatenate((_lowest_mean(space, posterior, starts, seen), ranked))
    return first_new(space, ranked, seen, rng)


def _lowest_mean(space: Space, posterior: Posterior, starts: Array, seen: Array) -> Array:
    """Return the point of the lowest mean that ``starts`` lead to, none if it is known: a row."""
    height = NegativeMean(posterior)
    ends = space.snap(climb(height, space, starts, _POLISH_EVALUATIONS))
    lowest = ends[[np.argmax(height(ends))]]
    return lowest if distance(lowest, seen).min() > _POLISHED else lowest[:0]


def first_new(space: Space, ranked: Array, seen: Array, rng: np.random.Generator) -> Array:
    """Return the first row of ``ranked`` that is not in ``seen``, or else any other legal point."""
    for points in (ranked, _all_points(space, rng)):
        for point in points:
            if not len(seen) or distance(point[None], seen).min() > SAME:
                return np.asarray(point)
    return np.asarray(space.from_cube(rng.random((1, len(space))))[0])


def _all_points(space: Space, rng: np.random.Generator) -> Array:
    """Return all legal points of a small space in random order, of a large one none."""
    if space.n_points > _FEW_POINTS:
        return np.empty((0, len(space)))
    return rng.permutation(np.array(list(product(*(levels(d) for d in space.dimensions)))))


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
    """Return legal points by an acquisition of ``posterior``, the largest first.

    Some of those looked at are near the rows of ``best``; ``rough`` is cheaper and ranks first.
    """
    n, warp = len(posterior.points), posterior.input_warp
    if settings.grid_size:
        grid_size = settings.grid_size
        return rank_grid(acquisition, space, rng, n_points=grid_size, input_warp=warp)
    # About 150 000 kernel entries per sample, whatever n.
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
