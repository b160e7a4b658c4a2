"""The next point of a search: from observations, pending points and a seed, nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.gp.acquisition import LogEI
from spearmint.gp.arrays import Array
from spearmint.gp.encode import Space, distance
from spearmint.gp.evidence import LogPosterior, Prior, default_prior
from spearmint.gp.hypers import posterior_mode, sample
from spearmint.gp.kernel import sq_differences
from spearmint.gp.maximize import SAME, candidates, maximize
from spearmint.gp.posterior import Posterior, condition
from spearmint.gp.threads import one_blas_thread
from spearmint.gp.warp import standardise, warped

# More observations than this are thinned: a covariance of 2000 takes 0.2 s and 32 MB a sample.
MAX_OBSERVATIONS = 2000
# Observations that the hyperparameters see at most, fewer in many dimensions.
_HYPER_OBSERVATIONS = 250
# Plain expected improvement may polish a local optimum to the last trial. This share of the
# proposals asks for this much more, in standard deviations of the (warped) objective: nothing near
# the best point can give that, so they go where the model is unsure. Measured in docs/choosers.rst.
_WIDE_SHARE = 0.2
_WIDE_MARGIN = 0.2


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How the Gaussian process searches; see :class:`spearmint.choosers.GPEIOptChooser`."""

    mcmc_iters: int = 10
    burnin: int = 4
    noiseless: bool = False
    pending_samples: int = 8
    grid_subset: int = 20
    warp: bool = True


def next_point(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
) -> Array:
    """Return the legal point to evaluate next, shape ``(D,)``.

    Args:
        space: The D dimensions.
        points: Observed points, shape ``(n, D)``, n >= 2.
        y: Finite observations, shape ``(n,)``, to be minimised.
        pending: Points without a result yet, shape ``(p, D)``.
        settings: Effort and switches.
        rng: Source of all randomness: the same state gives the same point.
    """
    seen = np.concatenate((points, pending))
    if len(y) > MAX_OBSERVATIONS:
        kept = _subset(y, MAX_OBSERVATIONS, rng)
        points, y = points[kept], y[kept]
    with one_blas_thread():
        posterior = _fit(space, points, y, pending, settings, rng)
        ranked = _ranked(space, points[np.argsort(y, kind="stable")[:5]], posterior, settings, rng)
    return first_new(space, ranked, seen, rng)


def first_new(space: Space, ranked: Array, seen: Array, rng: np.random.Generator) -> Array:
    """Return the first row of ``ranked`` that is not in ``seen``, or else any other legal point."""
    for start in range(0, len(ranked), 32):
        block = ranked[start : start + 32]
        new = distance(block, seen).min(axis=1) > SAME if len(seen) else np.ones(len(block), bool)
        if new.any():
            return np.asarray(block[np.argmax(new)])
    return np.asarray(space.from_cube(rng.random((1, len(space))))[0])


def _ranked(
    space: Space, best: Array, posterior: Posterior, settings: Settings, rng: np.random.Generator
) -> Array:
    """Return legal points by expected improvement, the largest first."""
    n = len(posterior.points)
    # About 150 000 kernel entries per sample, whatever n.
    n_global = 1 << int(np.clip(np.round(np.log2(150_000 / n)), 8, 11))
    pool = candidates(space, best, rng, n_global=n_global)
    return maximize(
        LogEI(posterior, margin=_WIDE_MARGIN if rng.random() < _WIDE_SHARE else 0.0),
        space,
        pool,
        rng,
        n_starts=settings.grid_subset,
        max_evaluations=60 if n < 300 else 25,
    )


def _fit(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
) -> Posterior:
    """Choose the warp, sample the hyperparameters, condition on the data and the fantasies."""
    n, n_dimensions = points.shape
    prior = default_prior(n_dimensions, noiseless=settings.noiseless)
    columns, added = warped(y) if settings.warp else (standardise(y)[:, None], np.zeros(1))
    most = int(np.clip(np.sqrt(2e6 / n_dimensions), 64, _HYPER_OBSERVATIONS))
    kept = _subset(y, most, rng) if n > most else np.arange(n)
    sq = sq_differences(points[kept], points[kept], space.is_category)
    mode, column = _mode_and_warp(sq, columns[kept], added, prior, n / len(kept))
    thetas = sample(
        LogPosterior(sq, columns[kept, column], prior),
        mode,
        rng,
        n_samples=settings.mcmc_iters if n < 100 else max(3, settings.mcmc_iters * 100 // n),
        burnin=settings.burnin,
    )
    return condition(
        points,
        columns[:, column],
        pending,
        thetas,
        space.is_category,
        n_fantasies=settings.pending_samples,
        rng=rng,
    )


def _mode_and_warp(
    sq: Array, columns: Array, added: Array, prior: Prior, share: float
) -> tuple[Array, int]:
    """Return the mode of theta and the index of the warped column, chosen by turns."""
    theta, column = prior.mean, -1
    for _ in range(2):
        evidences = LogPosterior(sq, columns[:, 0], prior).evidences(theta, columns)
        chosen = int(np.argmax(share * evidences + added))
        if chosen == column:
            break
        column = chosen
        theta = posterior_mode(LogPosterior(sq, columns[:, column], prior), theta)
    return theta, column


def _subset(y: Array, size: int, rng: np.random.Generator) -> Array:
    """Return sorted indices of ``size`` observations: the best third, the others at random."""
    order = np.argsort(y, kind="stable")
    best = size // 3
    others = rng.choice(order[best:], size - best, replace=False)
    return np.sort(np.concatenate((order[:best], others)))
