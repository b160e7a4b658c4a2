"""The posterior of the objective for every hyperparameter sample, including pending trials.

=========  ============  ======================================================================
symbol     name in code  meaning
=========  ============  ======================================================================
S, F       ``S``, ``F``  hyperparameter samples; fantasies of the pending trials per sample
N, p       ``N``         points conditioned on: n observed, then p pending
L          ``factor``    lower Cholesky factor of C + g I over the N points
m          ``mean``      constant mean, its generalised least squares estimate, shape ``(S,)``
a          ``scale``     amplitude, 1 over the posterior mean of 1 / a, shape ``(S,)``
alpha      ``alpha``     (C + g I)^-1 (y - m), shape ``(S, N, F)``
eta        ``best``      incumbent: lowest posterior mean at a point tried, shape ``(S, F)``
g          ``noise``     noise variance divided by the amplitude, shape ``(S,)``
=========  ============  ======================================================================

The outcome of a pending trial is drawn from the posterior (a fantasy), and the posterior is
conditioned on it, as in Snoek, Larochelle and Adams 2012 (arXiv:1206.2944), section 3. The
posterior is that of Rasmussen and Williams 2006, eqs. 2.25 and 2.26, with the estimates of the mean
and the amplitude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack
from scipy.special import ndtri

from spearmint.gp.evidence import A0, B0, JITTER, cholesky
from spearmint.gp.kernel import matern52, matern52_slope, pull, sq_distances
from spearmint.gp.triangles import (
    FEW_ROWS,
    times_lower,
    times_lower_transposed,
    times_symmetric,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spearmint.gp.input_warp import InputWarp
    from spearmint.gp.numerics import Array
    from spearmint.gp.trend import Trend

# Minimum variance in units of the amplitude: below it, 1 - k' K^-1 k is a rounding error.
VARIANCE_FLOOR = 1e-10


@dataclass(frozen=True, kw_only=True)
class Posterior:
    """S x F Gaussian processes over the same N points.

    The attribute ``points`` has warped coordinates; arguments of methods are not warped. ``trend``
    is a known part of the mean. ``inverse`` is (C + g I)^-1, shape ``(S, N, N)``, of which only
    the lower triangles count; without it, products take L^-1 twice.
    """

    points: Array
    is_category: NDArray[np.bool_]
    weights: Array
    inverse_factor: Array
    alpha: Array
    mean: Array
    scale: Array
    best: Array
    noise: Array
    input_warp: InputWarp | None = None
    trend: Trend | None = None
    inverse: Array | None = None

    def thinned(self, n_samples: int) -> Posterior:
        """Return a posterior with at most ``n_samples`` samples, far apart in their chain."""
        kept = np.unique(np.linspace(0, len(self.mean) - 1, n_samples).round().astype(int))
        fields = ("weights", "inverse_factor", "alpha", "mean", "scale", "best", "noise")
        some = {name: getattr(self, name)[kept] for name in fields}
        return replace(self, **some, inverse=None if self.inverse is None else self.inverse[kept])

    def compared_with(self, points: Array) -> Posterior:
        """Return the posterior whose ``best`` is the lowest mean at ``points`` (m, D)."""
        return replace(self, best=self.predict(points)[0].min(axis=1))

    def predict(self, points: Array) -> tuple[Array, Array]:
        """Return the noise-free mean ``(S, m, F)`` and variance ``(S, m)`` at ``points``."""
        mean, _, left = self.whitened(points)
        return mean, self.scale[:, None] * left

    @property
    def noise_sd(self) -> float:
        """Standard deviation of the noise of an observation, over all samples."""
        return float(np.sqrt(np.mean(self.noise * self.scale)))

    def extended(self, point: Array, normals: Array) -> Posterior:
        """Return the posterior with one more pending trial, without a new factorisation.

        The factor gets one row: with l = L^-1 k, the new rows of L and L^-1 are (l', d) and
        (-l' L^-1 / d, 1 / d), where d^2 = 1 + g - l' l. This takes O(S N^2).

        Args:
            point: The pending point, shape ``(D,)``.
            normals: Standard normal draws of its outcome, shape ``(S, F)``. A posterior without
                pending trials has one fantasy, which then becomes F.
        """
        n, (_, half, left) = len(self.points), self.whitened(point[None])
        rest = np.sqrt(np.maximum(left[:, 0] + self.noise, VARIANCE_FLOOR))
        row = -times_lower(half, self.inverse_factor)[:, 0] / rest[:, None]
        inverse = np.zeros((len(rest), n + 1, n + 1))
        inverse[:, :n, :n] = self.inverse_factor
        inverse[:, n, :n], inverse[:, n, n] = row, 1.0 / rest
        drawn = np.sqrt(self.scale)[:, None] * normals
        alpha = np.empty((len(rest), n + 1, normals.shape[1]))
        alpha[:, :n] = self.alpha + row[:, :, None] * drawn[:, None, :]
        alpha[:, n] = drawn / rest[:, None]
        larger = replace(
            self,
            points=np.concatenate((self.points, self.warped(point[None]))),
            inverse_factor=inverse,
            alpha=alpha,
        )
        return replace(larger, best=np.minimum(self.best, larger.predict(point[None])[0][:, 0]))

    def whitened(self, points: Array) -> tuple[Array, Array, Array]:
        """Return mean ``(S, m, F)``, L^-1 k ``(S, m, N)`` and variance / amplitude ``(S, m)``."""
        k = self.correlation(points)
        mean = self.mean[:, None, None] + k @ self.alpha
        if self.trend is not None:
            mean += self.trend(points)[:, None]
        half = times_lower_transposed(k, self.inverse_factor)
        return mean, half, np.maximum(1.0 - np.sum(half * half, axis=2), VARIANCE_FLOOR)

    def solved(self, k: Array) -> tuple[Array, Array]:
        """Return (C + g I)^-1 k and 1 - k' (C + g I)^-1 k of correlations k, ``(S, m, N)``."""
        if self.inverse is None or k.shape[1] > FEW_ROWS:
            half = times_lower_transposed(k, self.inverse_factor)
            left = 1.0 - np.sum(half * half, axis=2)
            out = times_lower(half, self.inverse_factor)
        else:
            out = times_symmetric(k, self.inverse)
            left = 1.0 - np.sum(k * out, axis=2)
        return out, np.maximum(left, VARIANCE_FLOOR)

    def correlation_of(self, warped: Array, others: Array) -> Array:
        """Return the correlation of warped points, ``(S, m, k)``."""
        return matern52(sq_distances(warped, others, self.weights, self.is_category))

    def correlation(self, points: Array) -> Array:
        """Return the correlation of ``points`` with the N points, ``(S, m, N)``."""
        return matern52(self._sq_distances(self.warped(points)))

    def covariance(self, points: Array) -> Array:
        """Return the noise-free covariances of ``points`` (m, D), shape ``(S, m, m)``."""
        warped = self.warped(points)
        prior = self.correlation_of(warped, warped)
        half = times_lower_transposed(self.correlation(points), self.inverse_factor)
        left = prior - half @ half.transpose(0, 2, 1)
        diagonal = np.arange(len(points))
        left[:, diagonal, diagonal] = np.maximum(left[:, diagonal, diagonal], VARIANCE_FLOOR)
        return np.asarray(self.scale[:, None, None] * left)

    def kernel(self, points: Array) -> tuple[Array, Array]:
        """Return the correlation with the N points and its derivative by r^2, ``(S, m, N)``."""
        return matern52_slope(self._sq_distances(self.warped(points)))

    def pull(self, points: Array, by_r2: Array) -> Array:
        """Return the gradient by coordinates (m, D), given the gradient by r^2, ``(S, m, N)``.

        The gradient by the coordinate of a category has no meaning and is 0.
        """
        warped = self.warped(points)
        by_warped = pull(warped, self.points, self.weights, self.is_category, by_r2)
        return by_warped * self.input_warp.slope(points) if self.input_warp else by_warped

    def warped(self, points: Array) -> Array:
        """Return warped coordinates of ``points``."""
        return self.input_warp(points) if self.input_warp else points

    def _sq_distances(self, warped: Array) -> Array:
        return sq_distances(warped, self.points, self.weights, self.is_category)


def condition(
    points: Array,
    y: Array,
    pending: Array,
    thetas: Array,
    is_category: NDArray[np.bool_],
    *,
    n_fantasies: int,
    rng: np.random.Generator,
    input_warp: InputWarp | None = None,
) -> Posterior:
    """Condition one Gaussian process per row of ``thetas`` on the data and on the fantasies.

    Args:
        points: Observed points, shape ``(n, D)``.
        y: Standardised observations, shape ``(n,)``.
        pending: Points without a result yet, shape ``(p, D)``.
        thetas: Log length scales and log noise ratios, shape ``(S, D + 1)``.
        is_category: Mask of the categories, shape ``(D,)``.
        n_fantasies: Joint draws of the pending outcomes per row; 1 is used if none is pending.
        rng: Source of the fantasies.
        input_warp: Warp of the coordinates for the kernel; None for no warp.
    """
    n, everywhere = len(y), np.concatenate((points, pending))
    everywhere = input_warp(everywhere) if input_warp else everywhere
    weights = np.exp(-2.0 * thetas[:, :-1])
    correlations = matern52(sq_distances(everywhere, everywhere, weights, is_category))
    n_fantasies = n_fantasies if len(pending) else 1
    normals = _normals(len(thetas), len(pending), n_fantasies, rng)
    inverse = np.empty_like(correlations)
    alpha = np.empty((len(thetas), len(everywhere), n_fantasies))
    mean, scale = np.empty(len(thetas)), np.empty(len(thetas))
    for s, correlation in enumerate(correlations):
        inverse[s] = _inverse_factor(correlation, float(np.exp(thetas[s, -1])))
        white, one = inverse[s, :n, :n] @ y, inverse[s, :n, :n].sum(axis=1)
        mean[s] = (one @ white) / (one @ one)
        rest = white - mean[s] * one
        scale[s] = (B0 + 0.5 * (rest @ rest)) / (A0 + 0.5 * (n - 1))
        # Whitened, a fantasy consists of n known residuals and p independent draws: L z = y - m.
        drawn = np.sqrt(scale[s]) * normals[s]
        alpha[s] = inverse[s].T @ np.concatenate((np.repeat(rest[:, None], n_fantasies, 1), drawn))
    best = mean[:, None] + np.min(correlations @ alpha, axis=1)
    return Posterior(
        points=everywhere,
        is_category=is_category,
        weights=weights,
        inverse_factor=inverse,
        alpha=alpha,
        mean=mean,
        scale=scale,
        best=best,
        noise=np.exp(thetas[:, -1]) + JITTER,
        input_warp=input_warp,
    )


def _inverse_factor(correlation: Array, noise: float) -> Array:
    """Return L^-1 of ``correlation + noise I``; increase the jitter until a factor exists."""
    jitter = JITTER
    while True:
        k = correlation.copy()
        k.flat[:: len(k) + 1] += noise + jitter
        factor = cholesky(k)
        if factor is not None:
            return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
        jitter *= 10.0


def _normals(n_samples: int, n_pending: int, n_fantasies: int, rng: np.random.Generator) -> Array:
    """Return standard normal draws ``(S, p, F)``, low-discrepancy over all S x F fantasies."""
    total = n_samples * n_fantasies
    if n_pending == 0:
        return np.empty((n_samples, 0, n_fantasies))
    from scipy.stats import qmc  # slow to import; a report needs no fantasies

    # Sobol points are balanced only if their number is a power of two.
    uniform = qmc.Sobol(n_pending, rng=rng).random(1 << (total - 1).bit_length())[:total]
    normal = ndtri(np.clip(uniform, 1e-6, 1.0 - 1e-6)).reshape(n_samples, n_fantasies, n_pending)
    return np.asarray(normal.transpose(0, 2, 1))
