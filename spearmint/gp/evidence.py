"""Log evidence of length scales and noise, their prior, and exact gradients.

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

The constant mean (flat prior) and the amplitude are integrated out in closed form; the D + 1
parameters theta remain to be sampled. Source: Rasmussen and Williams 2006, eq. 2.45 (basis function
1, flat prior); for the amplitude: Gelman et al. 2013, section 14.2, with an inverse gamma prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from spearmint.gp import packed_triangles as packed
from spearmint.gp.kernel import matern52, matern52_slope
from spearmint.gp.numerics import Array

# A weak prior, equivalent to three observations. y is standardised: amplitudes are near 1.
A0 = 1.5
B0 = 1.5
# Added to the diagonal, in units of the amplitude: keeps K positive definite at n = 1000.
JITTER = 1e-8


@dataclass(frozen=True, kw_only=True)
class Prior:
    """Independent normal priors of theta, truncated at ``lower`` and ``upper``."""

    mean: Array
    std: Array
    lower: Array
    upper: Array

    def log_density(self, theta: Array) -> float:
        """Return the log density of ``theta``, up to a constant."""
        if not ((theta >= self.lower) & (theta <= self.upper)).all():
            return -np.inf
        return self.with_gradient(theta)[0]

    def with_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log density of ``theta`` without the truncation, and its gradient."""
        z = (theta - self.mean) / self.std
        return -0.5 * float(z @ z), -z / self.std


def default_prior(n_dimensions: int, *, noiseless: bool, together: Array | None = None) -> Prior:
    """Return the prior of the D log length scales and the log noise ratio.

    Length scales grow with sqrt(D), like distances in the cube: Hvarfner et al. 2024
    (arXiv:2402.02229). ``noiseless`` means a small noise, not zero: variations that are too fine
    for the data look like noise, and an interpolating GP would follow them. With conditional
    dimensions, ``together`` is how many are active at once where each of them is: two points of a
    branch differ in no more, shape ``(D,)``.
    """
    ones = np.ones(n_dimensions)
    mean = 0.5 * np.log(n_dimensions if together is None else together) - 0.9
    noise = -12.0 if noiseless else -7.0
    return Prior(
        mean=np.append(mean * ones, noise),
        std=np.append(1.1 * ones, 3.0),
        lower=np.append(-4.6 * ones, -17.0),
        upper=np.append(max(3.5, 0.5 * np.log(n_dimensions) + 2.5) * ones, 2.0),
    )


def cholesky(k: Array) -> Array | None:
    """Return the lower Cholesky factor of symmetric ``k``; None if it does not exist."""
    # The transposed view has the lower triangle in LAPACK's memory order, which avoids a copy.
    factor, info = lapack.dpotrf(k.T, lower=1, clean=1, overwrite_a=1)
    return np.asarray(factor) if info == 0 else None


def log_evidence(k: Array, y: Array) -> Array:
    """Return the log evidence of packed ``K`` for each column of ``y`` (n, m), up to a constant.

    This function overwrites ``k``.
    """
    n = len(y)
    factor = packed.cholesky(k, n)
    if factor is None:
        return np.full(y.shape[1], -np.inf)
    solved = packed.forward(factor, np.hstack((y, np.ones((n, 1)))))
    white, one = solved[:, :-1], solved[:, -1]
    ones = one @ one
    misfit = np.maximum(np.sum(white * white, axis=0) - (one @ white) ** 2 / ones, 0.0)
    log_det = np.log(factor[packed.layout(n).diagonal]).sum()
    shape = A0 + 0.5 * (n - 1)
    return np.asarray(-log_det - 0.5 * np.log(ones) - shape * np.log(B0 + 0.5 * misfit))


class LogPosterior:
    """Log posterior of theta given packed differences ``sq`` (D, n (n + 1) / 2) and ``y``."""

    def __init__(self, sq: Array, y: Array, prior: Prior) -> None:
        self._sq = sq
        self._y = y[:, None]
        self._diagonal = packed.layout(len(y)).diagonal
        self.prior = prior

    @property
    def n_observations(self) -> int:
        """Number of values in ``y``."""
        return len(self._y)

    def __call__(self, theta: Array) -> float:
        """Return the log posterior, up to a constant."""
        prior = self.prior.log_density(theta)
        if prior == -np.inf:
            return prior
        return prior + float(self.evidence_of(theta, self._y)[0])

    def evidence_of(self, theta: Array, y: Array) -> Array:
        """Return the log evidence of ``theta`` for each column of another ``y`` (n, m)."""
        k = matern52(np.exp(-2.0 * theta[:-1]) @ self._sq)
        k[self._diagonal] += np.exp(theta[-1]) + JITTER
        return log_evidence(k, y)

    def with_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log posterior and its gradient, shape ``(D + 1,)``."""
        value, gradient, _ = evidence_slope(self._sq, self._y[:, 0], theta)
        prior, by_prior = self.prior.with_gradient(theta)
        return value + prior, gradient + by_prior


def evidence_slope(sq: Array, y: Array, theta: Array) -> tuple[float, Array, Array]:
    """Return the log evidence, its gradient by theta, and its derivative by r^2.

    The derivative by r^2 has one number for each pair of points, packed like ``sq``
    (D, n (n + 1) / 2). If K has no Cholesky factor, return minus infinity and zeros.
    """
    diagonal = packed.layout(len(y)).diagonal
    weights, noise = np.exp(-2.0 * theta[:-1]), float(np.exp(theta[-1]))
    k, slope = matern52_slope(weights @ sq)
    k[diagonal] += noise + JITTER
    parts = _solve(k, y)
    if parts is None:
        return -np.inf, np.zeros_like(theta), np.zeros_like(slope)
    value, by_k = parts
    gradient = np.empty_like(theta)
    gradient[-1] = noise * float(by_k[diagonal].sum())
    # Factor 2: each pair of points is packed once. On the diagonal r^2 is 0 for any theta.
    by_r2 = 2.0 * by_k * slope
    gradient[:-1] = -2.0 * weights * (sq @ by_r2)
    return value, gradient, by_r2


def _solve(k: Array, y: Array) -> tuple[float, Array] | None:
    """Return the log evidence and its packed derivative by K; overwrite packed ``k``.

    d log evidence = -1/2 tr(P dK) + shape / (2 (b0 + S/2)) (P y)' dK (P y).
    """
    n = len(y)
    factor = packed.cholesky(k, n)
    if factor is None:
        return None
    log_det = np.log(factor[packed.layout(n).diagonal]).sum()
    left, column = packed.solve(factor, np.column_stack((y, np.ones(n)))).T
    ones = column.sum()
    solved = left - column * (column @ y / ones)
    shape = A0 + 0.5 * (n - 1)
    scale = B0 + 0.5 * max(float(y @ solved), 0.0)
    value = -log_det - 0.5 * np.log(ones) - shape * np.log(scale)
    columns = (column * np.sqrt(0.5 / ones), solved * np.sqrt(0.5 * shape / scale))
    by_k = packed.add_products(packed.inverse(factor, n), -0.5, np.column_stack(columns))
    return float(value), by_k
