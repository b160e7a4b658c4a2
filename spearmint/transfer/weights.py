"""Weights of earlier searches: how often each ranks the trials of a search best.

==========  =============  ========================================================================
symbol      name in code   meaning
==========  =============  ========================================================================
mu_i(x_j)   ``means``      what the model of earlier search i predicts at trial j
r_j         ``left_out``   what the model of this search predicts at trial j without its value
L_i         ``losses``     share of the pairs of trials, of unequal values, that model i misranks
==========  =============  ========================================================================

In each of many bootstrap samples of the trials, the model with the smallest loss wins; its weight
is the share of samples that it wins. Source: Feurer, Letham and Bakshy 2018 (arXiv:1802.02219),
sections 3.1 and 3.2, where posterior samples take the part of the bootstrap.

Two rules give an earlier search no weight. It must rank better than by chance, with an error of
``_ERROR`` over all earlier searches: with few trials the model of this search predicts worse than
chance, and anything else would win. And the median of its losses must not be above a high quantile
of those of this search, so that the weights of many poor models do not add up (section 3.3).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from spearmint.gp.evidence import JITTER, LogPosterior, cholesky, default_prior
from spearmint.gp.hypers import posterior_mode
from spearmint.gp.kernel import matern52, sq_differences, sq_distances
from spearmint.gp.numerics import Array
from spearmint.gp.packed_triangles import pack
from spearmint.gp.space import Space

_SAMPLES = 200
_CHANCE, _ERROR, _DILUTION = 0.5, 0.1, 0.95
LEAST_RANKED = 4
"""With fewer trials than this, no ranking is certain."""


def weights(y: Array, means: Array, left_out: Array, rng: np.random.Generator) -> Array:
    """Return the weights of k earlier searches, shape ``(k,)``; their sum is at most 1.

    Args:
        y: Values of the trials, to be minimised, shape ``(n,)``.
        means: Predictions of the earlier searches, shape ``(k, n)``.
        left_out: Predictions of this search without the value of each trial, shape ``(n,)``.
        rng: Source of the bootstrap samples.
    """
    k, n = means.shape
    if n < LEAST_RANKED or not np.ptp(y) > 0.0:
        return np.zeros(k)
    counts = rng.multinomial(n, np.full(n, 1.0 / n), size=_SAMPLES).astype(float)
    losses = _losses(y, np.vstack((means, left_out)), counts)
    own = np.minimum(losses[-1], _CHANCE)
    usable = np.quantile(losses[:-1], 1.0 - _ERROR / k, axis=1) < _CHANCE
    usable &= np.median(losses[:-1], axis=1) <= np.quantile(own, _DILUTION)
    rivals = np.where(usable[:, None], losses[:-1], np.inf)
    winner = np.argmin(rivals, axis=0)
    wins = rivals[winner, np.arange(_SAMPLES)] < own
    return np.bincount(winner[wins], minlength=k) / _SAMPLES


def _losses(y: Array, means: Array, counts: Array) -> Array:
    """Return the losses of each row of ``means`` in each sample of ``counts``, ``(k, S)``."""
    order = np.sign(y[:, None] - y[None, :])
    pairs = np.einsum("si,ij,sj->s", counts, np.abs(order), counts)
    out = []
    for mean in means:
        # A tie counts half: a constant model ranks by chance.
        wrong = np.abs(order) * (0.5 - 0.5 * order * np.sign(mean[:, None] - mean[None, :]))
        misranked = np.einsum("si,ij,sj->s", counts, wrong, counts)
        out.append(np.where(pairs > 0.0, misranked / np.maximum(pairs, 1.0), _CHANCE))
    return np.array(out)


def left_out_means(space: Space, points: Array, y: Array, *, noiseless: bool) -> Array:
    """Return the prediction at each of ``points`` (n, D) without its value, shape ``(n,)``.

    The hyperparameters are those of the mode given all values. Source: Rasmussen and Williams
    2006, eq. 5.12, with the projection that integrates the constant mean out.
    """
    prior = default_prior(len(space), noiseless=noiseless)
    sq = pack(sq_differences(points, points, space.is_category))
    mode = posterior_mode(LogPosterior(sq, y, prior), prior.mean)
    weight = np.exp(-2.0 * mode[None, :-1])
    k = matern52(sq_distances(points, points, weight, space.is_category))[0]
    k.flat[:: len(k) + 1] += np.exp(mode[-1]) + JITTER
    factor = cholesky(k)
    if factor is None:
        return np.full(len(y), float(y.mean()))
    root = solve_triangular(factor, np.eye(len(y)), lower=True)
    inverse = root.T @ root
    column = inverse.sum(axis=1)
    projection = inverse - np.outer(column, column) / column.sum()
    return np.asarray(y - (projection @ y) / np.diag(projection))
