"""How well length scales and noise explain the data: log evidence, prior, exact gradients.

=============  ==================  =============================================================
symbol         name in code        meaning
=============  ==================  =============================================================
y              ``y``               observations, standardised, shape ``(n,)``
theta          ``theta``           log l_1 .. log l_D, log g
g              noise ratio         variance of the noise / amplitude
C              correlation         Matern 5/2 of all pairs
K              ``C + g I``         covariance / amplitude
P              ``projection``      K^-1 - K^-1 1 1' K^-1 / (1' K^-1 1)
S              ``misfit``          y' P y
a0, b0         ``A0``, ``B0``      shape and scale of the amplitude's inverse gamma prior
=============  ==================  =============================================================

The constant mean (flat prior) and the amplitude are integrated out in closed form, which leaves
D + 1 numbers to sample. Source: Rasmussen and Williams 2006, eq. 2.45 (basis function 1, flat
prior); the amplitude: Gelman et al. 2013, section 14.2, with an inverse gamma prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from spearmint.gp.arrays import Array
from spearmint.gp.kernel import matern52, matern52_slope

# Weak: worth three observations; y is standardised, so amplitudes near 1 are expected.
A0 = 1.5
B0 = 1.5
# Added to every diagonal, in units of the amplitude: keeps K positive definite at n = 1000.
JITTER = 1e-8


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Independent normal priors of theta, cut off at ``lower`` and ``upper``."""

    mean: Array
    std: Array
    lower: Array
    upper: Array

    def log_density(self, theta: Array) -> float:
        """Return the log density of ``theta``, without its constant."""
        if np.any(theta < self.lower) or np.any(theta > self.upper):
            return -np.inf
        return float(-0.5 * np.sum(((theta - self.mean) / self.std) ** 2))


def default_prior(n_dimensions: int, *, noiseless: bool) -> Prior:
    """Return the prior of the D log length scales and the log noise ratio.

    Length scales grow with sqrt(D), as do distances in the cube: Hvarfner et al. 2024
    (arXiv:2402.02229). Noiseless is a small noise, not none: ripples finer than the
    data look like noise, and an interpolating GP would follow them.
    """
    ones = np.ones(n_dimensions)
    noise = -12.0 if noiseless else -7.0
    return Prior(
        mean=np.append((0.5 * np.log(n_dimensions) - 0.9) * ones, noise),
        std=np.append(1.1 * ones, 3.0),
        lower=np.append(-4.6 * ones, -17.0),
        upper=np.append(max(3.5, 0.5 * np.log(n_dimensions) + 2.5) * ones, 2.0),
    )


def cholesky(k: Array) -> Array | None:
    """Return the lower Cholesky factor of symmetric ``k``, or None if it has none."""
    # A transposed view is what LAPACK calls the lower triangle in its own order: no copy.
    factor, info = lapack.dpotrf(k.T, lower=1, clean=1, overwrite_a=1)
    return np.asarray(factor) if info == 0 else None


def log_evidence(k: Array, y: Array) -> float:
    """Return the log evidence of ``K`` for ``y``, less a constant; ``k`` is overwritten."""
    n = len(k)
    factor = cholesky(k)
    if factor is None:
        return -np.inf
    right = np.asfortranarray(np.column_stack((y, np.ones(n))))
    solved, _ = lapack.dtrtrs(factor, right, lower=1, overwrite_b=1)
    white, one = solved[:, 0], solved[:, 1]
    ones = float(one @ one)
    misfit = max(float(white @ white) - float(one @ white) ** 2 / ones, 0.0)
    log_det = float(np.sum(np.log(np.diag(factor))))
    shape = A0 + 0.5 * (n - 1)
    return float(-log_det - 0.5 * np.log(ones) - shape * np.log(B0 + 0.5 * misfit))


class LogPosterior:
    """Log posterior of theta given differences ``sq`` (D, n, n) and ``y``, both held."""

    def __init__(self, sq: Array, y: Array, prior: Prior) -> None:
        self._flat = np.ascontiguousarray(sq.reshape(len(sq), -1))
        self._n = len(y)
        self._y = y
        self.prior = prior

    def __call__(self, theta: Array) -> float:
        """Return the log posterior, without its constant."""
        prior = self.prior.log_density(theta)
        if prior == -np.inf:
            return prior
        return prior + log_evidence(self._covariance(theta), self._y)

    def with_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient, shape ``(D + 1,)``."""
        n, weights = self._n, np.exp(-2.0 * theta[:-1])
        noise = float(np.exp(theta[-1]))
        k, slope = matern52_slope((weights @ self._flat).reshape(n, n))
        k.flat[:: n + 1] += noise + JITTER
        parts = _solve(k, self._y)
        if parts is None:
            return -np.inf, np.zeros_like(theta)
        value, by_k = parts
        # K depends on theta_d through r^2 only: dr^2/dtheta_d = -2 w_d delta_d^2.
        gradient = np.empty_like(theta)
        gradient[:-1] = -2.0 * weights * (self._flat @ (by_k * slope).ravel())
        gradient[-1] = noise * float(np.trace(by_k))
        prior = self.prior
        gradient -= (theta - prior.mean) / prior.std**2
        return value - 0.5 * float(np.sum(((theta - prior.mean) / prior.std) ** 2)), gradient

    def _covariance(self, theta: Array) -> Array:
        k = matern52((np.exp(-2.0 * theta[:-1]) @ self._flat).reshape(self._n, self._n))
        k.flat[:: self._n + 1] += np.exp(theta[-1]) + JITTER
        return k


def _solve(k: Array, y: Array) -> tuple[float, Array] | None:
    """Return the log evidence and its derivative by K (n, n); ``k`` is overwritten.

    d log evidence = -1/2 tr(P dK) + shape / (2 (b0 + S/2)) (P y)' dK (P y).
    """
    factor = cholesky(k)
    if factor is None:
        return None
    diagonal = np.diag(factor).copy()
    lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse = lower + lower.T
    inverse.flat[:: len(inverse) + 1] *= 0.5
    column = inverse.sum(axis=1)
    ones = float(column.sum())
    projection = inverse - np.outer(column, column) / ones
    solved = projection @ y
    shape = A0 + 0.5 * (len(y) - 1)
    scale = B0 + 0.5 * max(float(y @ solved), 0.0)
    value = -np.sum(np.log(diagonal)) - 0.5 * np.log(ones) - shape * np.log(scale)
    return float(value), -0.5 * projection + (0.5 * shape / scale) * np.outer(solved, solved)
