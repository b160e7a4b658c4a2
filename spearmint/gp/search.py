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
from spearmint.gp.warp import standardise, warped

# More observations than this are thinned: a covariance of 2000 takes 0.2 s and 32 MB a sample.
MAX_OBSERVATIONS = 2000
# Observations that the hyperparameters see at most, fewer in many dimensions.
_HYPER_OBSERVATIONS = 250


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
    posterior = _fit(space, points, y, pending, settings, rng)
    n = len(seen)
    best = points[np.argsort(y, kind="stable")[:5]]
    # About 150 000 kernel entries per sample, whatever n.
    n_global = 1 << int(np.clip(np.round(np.log2(150_000 / n)), 8, 11))
    ranked = maximize(
        LogEI(posterior, margin=MARGIN),
        space,
        candidates(space, best, rng, n_global=n_global),
        rng,
        n_starts=settings.grid_subset,
        max_evaluations=60 if n < 300 else 25,
    )
    return first_new(space, ranked, seen, rng)


def first_new(space: Space, ranked: Array, seen: Array, rng: np.random.Generator) -> Array:
    """Return the first row of ``ranked`` that is not in ``seen``, or else any other legal point."""
    for start in range(0, len(ranked), 32):
        block = ranked[start : start + 32]
        new = distance(block, seen).min(axis=1) > SAME if len(seen) else np.ones(len(block), bool)
        if new.any():
            return np.asarray(block[np.argmax(new)])
    return np.asarray(space.from_cube(rng.random((1, len(space))))[0])


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
    import os
    exp = os.environ.get("EXP", ""); share = float(os.environ.get("SHARE", "0.2"))
    broad = rng.random() < share
    if broad and exp == "A":
        lo = prior.lower.copy(); lo[:-1] = np.log(float(os.environ.get("LO", ".2"))*np.sqrt(n_dimensions))
        mean = prior.mean.copy(); mean[:-1] = lo[:-1] + .7; mean[-1] = -3
        prior = Prior(mean=mean, std=prior.std, lower=lo, upper=prior.upper)
    globals()["MARGIN"] = float(os.environ.get("XI", ".2")) if broad and exp == "B" else 0.0
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
