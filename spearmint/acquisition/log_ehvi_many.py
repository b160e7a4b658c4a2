"""Log of the expected hypervolume improvement of any number of objectives, by directions.

==========  ==============  =======================================================================
symbol      name in code    meaning
==========  ==============  =======================================================================
K           shapes          objectives, independent and normal (m_k, s_k) at a point
r           ``reference``   point beyond which a value has no volume
lambda      ``directions``  unit vector with positive elements, uniform on the sphere
rho(y)      ``_reach``      min_k (r_k - y_k) / lambda_k: how far the box of y reaches along lambda
b           ``known``       the largest rho of the front
==========  ==============  =======================================================================

In polar coordinates around r, the hypervolume is proportional to the mean of b^K over all lambda
(Zhang and Golovin 2020, arXiv:2006.04655, lemma 5). As rho(Y) > t if all Y_k < r_k - lambda_k t,

    EHVI ~ mean over lambda of the integral from b to infinity of
           K t^(K - 1) prod_k Phi((r_k - lambda_k t - m_k) / s_k) dt

The integral is a Gauss-Legendre sum, which ends where an objective would be ``_BETTER`` below the
best one that is known.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp

from spearmint.acquisition.factors import _prediction
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import Posterior

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_DIRECTIONS, _NODES = 32, 6
_BETTER = 1.0
_BLOCK = 128  # points at a time: memory


class LogEHVIMany:
    """Log expected hypervolume improvement over a front of K objectives, up to a constant."""

    def __init__(
        self,
        posteriors: tuple[Posterior, ...],
        front: Array,
        reference: Array,
        directions: Array,
    ) -> None:
        """Set the models, with one fantasy and equally many samples each.

        Args:
            posteriors: The models of the K objectives.
            front: The Pareto front in their units, within the reference point, shape ``(k, K)``.
            reference: The reference point, shape ``(K,)``.
            directions: The directions, shape ``(L, K)``.
        """
        self._posteriors = posteriors
        known = _reach(reference - front, directions).max(axis=1, initial=0.0)
        ideal = np.minimum(front.min(axis=0, initial=np.inf), reference)
        end = _reach((reference - ideal + _BETTER)[None], directions)[:, 0]
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        half = 0.5 * (end - known)[:, None]
        t = known[:, None] + half * (nodes + 1.0)
        power = len(posteriors) - 1
        self._log_weights = (np.log(half * weights) + power * np.log(t)).ravel()
        self._limits = (reference - directions[:, None, :] * t[:, :, None]).reshape(-1, power + 1)

    def __call__(self, points: Array) -> Array:
        """Return the logarithms at ``points``, shape ``(m,)``."""
        blocks = np.array_split(points, 1 + len(points) // _BLOCK)
        return np.concatenate([self._values(block) for block in blocks])

    def _values(self, points: Array) -> Array:
        total: Array = self._log_weights
        for limits, gp in zip(self._limits.T, self._posteriors, strict=True):
            mean, variance = gp.predict(points)
            total = total + log_ndtr((limits - mean) / np.sqrt(variance)[:, :, None])
        return np.asarray(logsumexp(total, axis=(0, 2)))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the logarithms and their gradients, ``(m, D)``, which are 0 for categories."""
        total: Array = self._log_weights
        parts = []
        for limits, gp in zip(self._limits.T, self._posteriors, strict=True):
            mean, left, by_points = _prediction(gp, points)
            std = np.sqrt(gp.scale[:, None] * left)
            z = (limits - mean[:, :, None]) / std[:, :, None]
            log_cdf = log_ndtr(z)
            total = total + log_cdf
            ratio = np.exp(-0.5 * z * z - _LOG_SQRT_2PI - log_cdf)
            parts.append((z, ratio, left, std, by_points))
        value = logsumexp(total, axis=(0, 2))
        share = np.exp(total - value[:, None])
        gradient = np.zeros_like(points)
        for z, ratio, left, std, by_points in parts:
            pull = share * ratio
            by_left = -0.5 * np.sum(pull * z, axis=2) / left
            gradient += by_points(-np.sum(pull, axis=2) / std, by_left)
        return np.asarray(value), gradient


def random_directions(n_objectives: int, rng: np.random.Generator) -> Array:
    """Return directions, uniform on the positive part of the sphere, shape ``(L, K)``."""
    normal = np.maximum(np.abs(rng.standard_normal((_DIRECTIONS, n_objectives))), 1e-6)
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))


def _reach(gains: Array, directions: Array) -> Array:
    """Return rho of points ``(k, K)``, given as r - y, for each direction: shape ``(L, k)``."""
    return np.asarray(np.min(gains[None] / directions[:, None, :], axis=2))
