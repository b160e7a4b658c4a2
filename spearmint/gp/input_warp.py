"""Input warping: a monotone transformation of each numeric coordinate, learned from the data.

Losses depend on factors of a learning rate, not on differences. If a parameter is declared on the
wrong scale, the loss is steep at one end of its range and flat over the rest, and no single length
scale fits both. The warp maps a coordinate x in [0, 1] to

    w(x) = 1 - (1 - x^a)^b

This is the cumulative distribution function of Kumaraswamy 1980 (J. Hydrology 46:79). It is similar
to the beta distribution of Snoek, Swersky, Zemel and Adams 2014 (arXiv:1402.0929), section 3, but
has a derivative in closed form. a = b = 1 means no warp. As in that paper, log a and log b have
normal priors around 0.

=========  ===============  ==================================================
symbol     name in code     meaning
=========  ===============  ==================================================
a, b       ``a``, ``b``     exponents of each number, shape ``(D,)``
w          ``warped``       warped coordinates
theta      ``theta``        length scales and noise ratio, see ``evidence``
phi        ``phi``          theta, then log a, then log b of the k numbers
V          ``value``        log posterior of phi
=========  ===============  ==================================================
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spearmint.gp.evidence import Prior, evidence_slope
from spearmint.gp.hypers import posterior_mode
from spearmint.gp.kernel import sq_differences
from spearmint.gp.packed_triangles import pack, unpack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spearmint.gp.numerics import Array

# Standard deviation of the priors of log a and log b, and their largest absolute value.
_STD = 0.75
_LARGEST = 2.5
# The search for a warp has this many evaluations. After the first ones, it stops when the gain lags
# behind a straight line from 0 to the gain that is necessary. Of 225 data sets, a warp was used for
# the same 35, and for the others the search stopped after 18 evaluations instead of 31.
_EVALUATIONS, _FIRST_EVALUATIONS = 60, 10
# The derivative by x can be infinite at 0 and at 1. It is evaluated at this distance instead.
_EDGE = 1e-9


@dataclass(frozen=True)
class InputWarp:
    """One curve per coordinate: exponents ``a`` and ``b`` and a mask of numbers, each ``(D,)``."""

    a: Array
    b: Array
    is_number: NDArray[np.bool_]

    def __call__(self, points: Array) -> Array:
        """Return ``points`` (m, D) warped; categories do not change."""
        x, a, b = self._numbers(points, 0.0)
        return self._put(points, 1.0 - (1.0 - x**a) ** b)

    def inverse(self, warped: Array) -> Array:
        """Return the points that the warp maps to ``warped``."""
        w, a, b = self._numbers(warped, 0.0)
        return self._put(warped, (1.0 - (1.0 - w) ** (1.0 / b)) ** (1.0 / a))

    def slope(self, points: Array) -> Array:
        """Return dw/dx at ``points``, 1 for categories."""
        x, a, b = self._numbers(points, _EDGE)
        slope = a * b * x ** (a - 1.0) * (1.0 - x**a) ** (b - 1.0)
        return self._put(np.ones_like(points), slope)

    def by_exponents(self, points: Array) -> tuple[Array, Array]:
        """Return dw / dlog a and dw / dlog b of the k numbers of ``points``, each ``(m, k)``."""
        x, a, b = self._numbers(points, 0.0)
        # Both are 0 at x = 0 and x = 1, in the limit. 0.5 replaces these x, for the logarithms.
        inside = (x > 0.0) & (x < 1.0)
        x = np.where(inside, x, 0.5)
        power = x**a
        left = 1.0 - power
        by_a = a * b * left ** (b - 1.0) * power * np.log(x)
        return inside * by_a, inside * (-b * left**b * np.log1p(-power))

    def _numbers(self, points: Array, edge: float) -> tuple[Array, Array, Array]:
        """Return the numeric coordinates, clipped to [edge, 1 - edge], and their exponents."""
        inside = np.clip(points[:, self.is_number], edge, 1.0 - edge)
        return inside, self.a[self.is_number], self.b[self.is_number]

    def _put(self, points: Array, numbers: Array) -> Array:
        """Return ``points`` with the numeric coordinates replaced by ``numbers``."""
        out = np.array(points)
        out[:, self.is_number] = numbers
        return out


class WarpPosterior:
    """Log posterior of phi given the observed ``points`` (n, D) and ``y``, with its gradient."""

    def __init__(
        self, points: Array, y: Array, is_category: NDArray[np.bool_], prior: Prior
    ) -> None:
        self._points = points
        self._y = y
        self._is_category = is_category
        zero = np.zeros(2 * int((~is_category).sum()))
        self.prior = Prior(
            mean=np.concatenate((prior.mean, zero)),
            std=np.concatenate((prior.std, zero + _STD)),
            lower=np.concatenate((prior.lower, zero - _LARGEST)),
            upper=np.concatenate((prior.upper, zero + _LARGEST)),
        )

    def split(self, phi: Array) -> tuple[Array, InputWarp]:
        """Return theta and the warp of ``phi``."""
        is_number = ~self._is_category
        end = len(is_number) + 1
        a, b = np.ones(len(is_number)), np.ones(len(is_number))
        a[is_number], b[is_number] = np.split(np.exp(phi[end:]), 2)
        return phi[:end], InputWarp(a, b, is_number)

    def with_gradient(self, phi: Array) -> tuple[float, Array]:
        """Return V and its gradient, which has the shape of ``phi``."""
        theta, warp = self.split(phi)
        warped = warp(self._points)
        sq = pack(sq_differences(warped, warped, self._is_category))
        value, by_theta, by_r2 = evidence_slope(sq, self._y, theta)
        # r^2 of a pair is the sum of w_d (u_d - u'_d)^2, so du_d adds 2 w_d (u_d - u'_d) by_r2.
        by_pair = unpack(by_r2, len(self._y))
        number = warp.is_number
        u, weights = warped[:, number], np.exp(-2.0 * theta[:-1])[number]
        by_u = 2.0 * weights * (by_pair.sum(axis=1)[:, None] * u - by_pair @ u)
        by_a, by_b = warp.by_exponents(self._points)
        by_exponents = [np.sum(by_u * by_a, axis=0), np.sum(by_u * by_b, axis=0)]
        prior, by_prior = self.prior.with_gradient(phi)
        return value + prior, np.concatenate((by_theta, *by_exponents)) + by_prior


def fit_input_warp(
    points: Array, y: Array, is_category: NDArray[np.bool_], prior: Prior, mode: Array
) -> tuple[Array, InputWarp | None]:
    """Return the joint mode of theta and the warp; or ``mode``, the mode without a warp, and None.

    The warp is used only if it increases the log posterior by more than half of ln n for each of
    its 2 k parameters, the criterion of Schwarz 1978 (Annals of Statistics 6:461).
    """
    # Equal values become more likely if all points are closer: they have no information on a scale.
    if not np.ptp(y) > 0.0 or is_category.all():
        return mode, None
    density = WarpPosterior(points, y, is_category, prior)
    none = np.zeros(2 * int((~is_category).sum()))
    plain = density.with_gradient(np.append(mode, none))[0]
    necessary = 0.5 * len(none) * np.log(len(y))

    def worthwhile(evaluations: int, value: float) -> bool:
        share = (evaluations - _FIRST_EVALUATIONS) / (_EVALUATIONS - _FIRST_EVALUATIONS)
        return share < 0.0 or value - plain >= share * necessary

    # Do not start from ``mode``: if only a warp explains the data, ``mode`` can be all noise.
    start = np.append(prior.mean, none)
    phi = posterior_mode(density, start, max_evaluations=_EVALUATIONS, worthwhile=worthwhile)
    gain = density.with_gradient(phi)[0] - plain
    return density.split(phi) if gain > necessary else (mode, None)
