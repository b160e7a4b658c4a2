"""Factors of the expected improvement, as logarithms with gradients.

==========  ======================  ===============================================================
symbol      name in code            meaning
==========  ======================  ===============================================================
S           shapes                  hyperparameter samples
m_s, v_s    ``mean``, ``variance``  posterior of sample s at a point, of ln c or of the labels
c           ``1 / c``               seconds of a trial
sigma_c     ``unit``                standard deviation of the observed ln c, the unit of m_s
==========  ======================  ===============================================================

The objective and the factor have independent models. The expectation of their product is therefore
the product of their expectations, and its logarithm is a sum.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, logsumexp

from spearmint.acquisition.maximize import Acquisition
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import VARIANCE_FLOOR, Posterior
from spearmint.gp.triangles import times_lower, times_lower_transposed

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))


class Sum:
    """The logarithm of the product of two acquisitions."""

    def __init__(self, first: Acquisition, second: Acquisition) -> None:
        self._parts = (first, second)

    def __call__(self, points: Array) -> Array:
        """Return the sums at ``points``, shape ``(m,)``."""
        first, second = self._parts
        return first(points) + second(points)

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the sums and their gradients, shape ``(m, D)``."""
        (value, gradient), (other, slope) = (part.with_gradient(points) for part in self._parts)
        return value + other, gradient + slope


class LogInverseCost:
    """Log of the expected inverse cost E[1 / c], where ln c is a Gaussian process.

    1 / c is log-normal, so E[1 / c] = mean_s exp(-m_s + v_s / 2). Source: Snoek, Larochelle and
    Adams 2012 (arXiv:1206.2944), section 3.2: expected improvement per second is EI(x) times the
    expected inverse duration, where a second, independent Gaussian process models ln c(x).
    """

    def __init__(self, posterior: Posterior, *, unit: float) -> None:
        """Set the posterior of ln c, in units of ``unit``, with one fantasy."""
        self._posterior = posterior
        self._unit = unit

    def __call__(self, points: Array) -> Array:
        """Return log E[1 / c] at ``points``, up to a constant, shape ``(m,)``."""
        mean, variance = self._posterior.predict(points)
        per_sample = -self._unit * mean[:, :, 0] + 0.5 * self._unit**2 * variance
        return np.asarray(logsumexp(per_sample, axis=0) - np.log(len(per_sample)))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return log E[1 / c] and its gradient, shape ``(m, D)``, which is 0 for categories."""
        mean, left, by_points = _prediction(self._posterior, points)
        scale = self._unit**2 * self._posterior.scale[:, None]
        per_sample = -self._unit * mean + 0.5 * scale * left
        value = logsumexp(per_sample, axis=0)
        share = np.exp(per_sample - value)
        gradient = by_points(-self._unit * share, 0.5 * scale * share)
        return value - np.log(len(per_sample)), gradient


class LogFeasibility:
    """Log probability that a point is feasible, by a Gaussian process fitted to labels.

    The labels are +1 (feasible) and -1 (infeasible). A point is feasible if the process is above 0,
    which has the probability mean_s Phi(m_s / sqrt(v_s)). Source: least-squares classification,
    Rasmussen and Williams 2006, section 6.5; multiplied with expected improvement: Gelbart, Snoek
    and Adams 2014 (arXiv:1403.5607), section 3, and Hernandez-Lobato et al. 2015
    (arXiv:1502.05312), eq. 3.
    """

    def __init__(self, posterior: Posterior, *, zero: float) -> None:
        """Set the posterior of the standardised labels; ``zero`` is the standardised label 0."""
        self._posterior = posterior
        self._zero = zero

    def __call__(self, points: Array) -> Array:
        """Return the logarithms at ``points``, shape ``(m,)``."""
        mean, variance = self._posterior.predict(points)
        per_sample = log_ndtr((mean[:, :, 0] - self._zero) / np.sqrt(variance))
        return np.asarray(logsumexp(per_sample, axis=0) - np.log(len(per_sample)))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the logarithms and their gradients, ``(m, D)``, which are 0 for categories."""
        mean, left, by_points = _prediction(self._posterior, points)
        std = np.sqrt(self._posterior.scale[:, None] * left)
        z = (mean - self._zero) / std
        per_sample = log_ndtr(z)
        value = logsumexp(per_sample, axis=0)
        # Share of a sample times phi / Phi, by logarithms, because phi and Phi can underflow.
        by_z = np.exp(-0.5 * z * z - _LOG_SQRT_2PI - value)
        gradient = by_points(by_z / std, -0.5 * by_z * z / left)
        return value - np.log(len(per_sample)), gradient


def _prediction(
    gp: Posterior, points: Array
) -> tuple[Array, Array, Callable[[Array, Array], Array]]:
    """Return the mean, the variance divided by the amplitude, and a function for gradients."""
    k, slope = gp.kernel(points)
    mean = gp.mean[:, None] + (k @ gp.alpha)[:, :, 0]
    half = times_lower_transposed(k, gp.inverse_factor)
    left = np.maximum(1.0 - np.sum(half * half, axis=2), VARIANCE_FLOOR)

    def by_points(by_mean: Array, by_left: Array) -> Array:
        """Return the gradient by the coordinates, ``(m, D)``, given those by mean and variance."""
        by_k = by_mean[:, :, None] * gp.alpha[:, None, :, 0]
        by_k -= (
            2.0
            * (by_left * (left > VARIANCE_FLOOR))[:, :, None]
            * times_lower(half, gp.inverse_factor)
        )
        return gp.pull(points, by_k * slope)

    return mean, left, by_points
