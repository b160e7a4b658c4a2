"""Log of the expected hypervolume improvement of two objectives, exact for each sample.

==========  ==============  =======================================================================
symbol      name in code    meaning
==========  ==============  =======================================================================
f_1 .. f_k  ``front``       Pareto front, ascending in the first objective
r           ``reference``   point beyond which a value has no volume
EI_j(c)     ``_improved``   E[max(c - Y_j, 0)] = s h((c - m) / s), objective j is normal (m, s)
==========  ==============  =======================================================================

The area that a point adds consists of one strip for each interval of the first objective between
neighbours of the front. As the objectives are independent,

    EHVI = sum_i (EI_1(a_(i+1)) - EI_1(a_i)) EI_2(b_i),  i = 0 .. k

where a = (-inf, f_11, .., f_k1, r_1), and b = (r_2, f_12, .., f_k2). Source: the strips are those
of Emmerich, Deutz and Klinkenberg 2011 (IEEE CEC), section III.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from spearmint.acquisition.factors import _prediction
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import Posterior

_LOG_SQRT_2PI = 0.5 * float(np.log(2.0 * np.pi))
_TINY = 1e-300  # its logarithm is that of an improvement of 0


class LogEHVI:
    """Log expected hypervolume improvement over a front of two objectives to minimise."""

    def __init__(
        self, posteriors: tuple[Posterior, Posterior], front: Array, reference: Array
    ) -> None:
        """Set the models, with one fantasy and equally many samples each.

        Args:
            posteriors: The models of both objectives.
            front: The Pareto front in their units, ascending in the first one and within the
                reference point, shape ``(k, 2)``.
            reference: The reference point, shape ``(2,)``.
        """
        self._posteriors = posteriors
        self._widths = np.append(front[:, 0], reference[0])
        self._heights = np.insert(front[:, 1], 0, reference[1])

    def __call__(self, points: Array) -> Array:
        """Return the logarithms at ``points``, shape ``(m,)``."""
        (mean, variance), (other, spread) = (gp.predict(points) for gp in self._posteriors)
        widths = _improved(self._widths, mean[:, :, 0], np.sqrt(variance))[0]
        heights = _improved(self._heights, other[:, :, 0], np.sqrt(spread))[0]
        area = np.sum(_strips(widths) * heights, axis=2)
        return np.asarray(np.log(area.mean(axis=0) + _TINY))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the logarithms and their gradients, ``(m, D)``, which are 0 for categories."""
        parts = []
        for gp, limits in zip(self._posteriors, (self._widths, self._heights), strict=True):
            mean, left, by_points = _prediction(gp, points)
            std = np.sqrt(gp.scale[:, None] * left)
            parts.append((*_improved(limits, mean, std), std / (2.0 * left), by_points))
        (width, width_mean, width_std, width_left, width_points) = parts[0]
        (height, height_mean, height_std, height_left, height_points) = parts[1]
        strips = _strips(width)
        total = np.sum(strips * height, axis=2).sum(axis=0) + _TINY
        gradient = width_points(
            np.sum(_strips(width_mean) * height, axis=2) / total,
            np.sum(_strips(width_std) * height, axis=2) * width_left / total,
        )
        gradient += height_points(
            np.sum(strips * height_mean, axis=2) / total,
            np.sum(strips * height_std, axis=2) * height_left / total,
        )
        return np.log(total / len(width)), gradient


def _strips(values: Array) -> Array:
    """Return the differences of neighbours along the last axis; the first has none before it."""
    return np.diff(values, axis=2, prepend=0.0)


def _improved(limits: Array, mean: Array, std: Array) -> tuple[Array, Array, Array]:
    """Return EI below each limit and its derivatives by mean and std, ``(S, m, limits)``."""
    u = (limits - mean[:, :, None]) / std[:, :, None]
    pdf, cdf = np.exp(-0.5 * u * u - _LOG_SQRT_2PI), ndtr(u)
    return std[:, :, None] * np.maximum(pdf + u * cdf, 0.0), -cdf, pdf
