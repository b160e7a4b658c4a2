"""The acquisition: log of the expected improvement, averaged over samples and fantasies.

========  ======================  =================================================
symbol    name in code            meaning
========  ======================  =================================================
mu, s     ``mean``, ``std``       posterior of one sample and one fantasy
eta       ``_target``             incumbent minus the margin
u         ``u``                   (eta - mu) / s
h(u)      ``h``                   phi(u) + u Phi(u); EI = s h(u)
S, F, m   shapes                  samples, fantasies, points
========  ======================  =================================================

EI is averaged over hyperparameters and over fantasies of the running trials as in Snoek,
Larochelle and Adams 2012 (arXiv:1206.2944), section 3. All values are logarithms, because EI itself
and its gradient underflow to 0.0 over most of the space: Ament et al. 2023 (arXiv:2310.20708),
eq. 9.
"""

from __future__ import annotations

import numpy as np
from scipy.special import erfcx, ndtr

from spearmint.gp.numerics import Array
from spearmint.gp.posterior import VARIANCE_FLOOR, Posterior

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


def log_h(u: Array) -> tuple[Array, Array, Array]:
    """Return log h(u), Phi(u) / h(u) and phi(u) / h(u), where h(u) = phi(u) + u Phi(u).

    The values are finite down to u = -1e150. Source: Ament et al. 2023 (arXiv:2310.20708), eq. 9.
    Below -1, h = phi (1 + u q) with q = Phi / phi by the scaled complementary error function; below
    -200, the limits q = -1 / u and 1 + u q = 1 / u^2.
    """
    near = np.maximum(u, -1.0)
    phi, cdf = np.exp(-0.5 * near * near - _LOG_SQRT_2PI), ndtr(near)
    h = phi + near * cdf
    far, middle = np.minimum(u, -200.0), np.clip(u, -200.0, -1.0)
    q = np.sqrt(0.5 * np.pi) * erfcx(middle / -np.sqrt(2.0))
    gap = np.where(u > -200.0, 1.0 + middle * q, 1.0 / far**2)
    q = np.where(u > -200.0, q, -1.0 / far)
    above = u > -1.0
    value = np.where(above, np.log(h), -0.5 * u * u - _LOG_SQRT_2PI + np.log(gap))
    return value, np.where(above, cdf / h, q / gap), np.where(above, phi / h, 1.0 / gap)


def _value(u: Array) -> Array:
    """Return the first of :func:`log_h`, each branch only where it holds."""
    above = u > -1.0
    near, below = u[above], u[~above]
    out = np.empty_like(u)
    out[above] = np.log(np.exp(-0.5 * near * near - _LOG_SQRT_2PI) + near * ndtr(near))
    middle = np.maximum(below, -200.0)
    q = np.sqrt(0.5 * np.pi) * erfcx(middle / -np.sqrt(2.0))
    gap = np.where(below > -200.0, 1.0 + middle * q, 1.0 / below**2)
    out[~above] = -0.5 * below * below - _LOG_SQRT_2PI + np.log(gap)
    return out


class LogEI:
    """Log expected improvement below ``posterior.best - margin``.

    ``margin`` is the least improvement that counts, in the units of the posterior. A larger margin
    explores more (xi of Brochu, Cora and de Freitas 2010, arXiv:1012.2599).
    """

    def __init__(self, posterior: Posterior, *, margin: float = 0.0) -> None:
        self._posterior = posterior
        self._target = (posterior.best - margin)[:, None, :]

    def __call__(self, points: Array) -> Array:
        """Return log EI at ``points``, shape ``(m,)``."""
        return self.of(*self._posterior.predict(points))

    def of(self, mean: Array, variance: Array) -> Array:
        """Return log EI, ``(m,)``, where the mean is ``(S, m, F)`` and the variance ``(S, m)``."""
        std = np.sqrt(variance)[:, :, None]
        per_sample = np.log(std) + _value((self._target - mean) / std)
        return _log_mean(per_sample)[0]

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return log EI, shape ``(m,)``, and its gradient by the coordinates, ``(m, D)``.

        The gradient by the coordinate of a category has no meaning and is 0.
        """
        gp = self._posterior
        k, slope = gp.kernel(points)
        mean = gp.mean[:, None, None] + k @ gp.alpha
        trend = gp.trend.with_gradient(points) if gp.trend is not None else None
        if trend is not None:
            mean += trend[0][:, None]
        solved, left = gp.solved(k)
        std = np.sqrt(gp.scale[:, None] * left)[:, :, None]
        log_per_sample, cdf_ratio, pdf_ratio = log_h((self._target - mean) / std)
        log_per_sample += np.log(std)
        value, share = _log_mean(log_per_sample)
        # d log(s h(u)) = -(Phi/h) / s dmu + (phi/h) / s ds, and ds = scale / (2 s) d(left).
        by_mean = -share * cdf_ratio / std
        by_left = np.sum(share * pdf_ratio / std**2, axis=2) * (0.5 * gp.scale[:, None])
        by_left *= left > VARIANCE_FLOOR
        by_k = by_mean @ gp.alpha.transpose(0, 2, 1)
        by_k -= 2.0 * by_left[:, :, None] * solved
        by_k *= slope
        gradient = gp.pull(points, by_k)
        if trend is not None:
            gradient += by_mean.sum(axis=(0, 2))[:, None] * trend[1]
        return value, gradient


class NegativeMean:
    """Minus the posterior mean, averaged over samples and fantasies: pure exploitation.

    Source: "minimize the response surface" of Jones 2001 (J. Global Optim. 21:345).
    """

    def __init__(self, posterior: Posterior) -> None:
        self._posterior = posterior

    def __call__(self, points: Array) -> Array:
        """Return the values at ``points``, shape ``(m,)``."""
        return np.asarray(-self._posterior.predict(points)[0].mean(axis=(0, 2)))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the values, ``(m,)``, and their gradient, ``(m, D)``; 0 for categories."""
        gp = self._posterior
        k, slope = gp.kernel(points)
        alpha = gp.alpha.mean(axis=2)
        mean = gp.mean[:, None] + (k @ alpha[:, :, None])[:, :, 0]
        by_k = slope * (alpha[:, None, :] / -len(alpha))
        value, gradient = -mean.mean(axis=0), gp.pull(points, by_k)
        if gp.trend is not None:
            trend, by_points = gp.trend.with_gradient(points)
            value, gradient = value - trend, gradient - by_points
        return value, gradient


def _log_mean(log_per_sample: Array) -> tuple[Array, Array]:
    """Return the log of the mean of exp(``log_per_sample``), shape (S, m, F), and the shares."""
    top = log_per_sample.max(axis=(0, 2))
    share = np.exp(log_per_sample - top[:, None])
    total = share.sum(axis=(0, 2))
    share /= total[:, None]
    return top + np.log(total / (log_per_sample.shape[0] * log_per_sample.shape[2])), share
