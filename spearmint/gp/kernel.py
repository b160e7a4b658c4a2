"""The kernel: Matern 5/2 with one length scale per dimension.

========  =====================  ==================================================
symbol    name in code           meaning
========  =====================  ==================================================
x         row of ``points``      coordinates, numbers in [0, 1], categories an index
w_d       ``weights``            1 / l_d^2, l_d the length scale of dimension d
r^2       ``r2``                 sum_d w_d delta_d(x, x')^2
delta_d   ``sq_differences``     x_d - x'_d, or for categories [x_d != x'_d]
========  =====================  ==================================================

Categories use the Hamming distance, scaled by a length scale for each category, so that the GP
learns how strongly the choices are correlated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spearmint.gp.numerics import Array


def matern52(r2: Array) -> Array:
    """Return the correlation at squared scaled distances ``r2``.

    Source: Rasmussen and Williams 2006, eq. 4.17 (nu = 5/2).
    """
    r = np.sqrt(5.0 * r2)
    return _rational(r, np.exp(-r))


def matern52_slope(r2: Array) -> tuple[Array, Array]:
    """Return the correlation and its derivative by ``r2``, which is finite at 0."""
    r = np.sqrt(5.0 * r2)
    decay = np.exp(-r)
    slope = r + 1.0
    slope *= -5.0 / 6.0
    slope *= decay
    return _rational(r, decay), slope


def _rational(r: Array, decay: Array) -> Array:
    """Return (1 + r + r^2 / 3) ``decay``; in place, because memory is slower than arithmetic."""
    out = r * (1.0 / 3.0)
    out += 1.0
    out *= r
    out += 1.0
    out *= decay
    return np.asarray(out)


def sq_differences(points: Array, others: Array, is_category: NDArray[np.bool_]) -> Array:
    """Return delta_d(x, x')^2 for every dimension and pair, shape ``(D, m, k)``."""
    delta = points.T[:, :, None] - others.T[:, None, :]
    out = delta * delta
    out[is_category] = delta[is_category] != 0.0
    return np.asarray(out)


def sq_distances(
    points: Array, others: Array, weights: Array, is_category: NDArray[np.bool_]
) -> Array:
    """Return r^2 of every pair for each row of ``weights`` (S, D), shape ``(S, m, k)``.

    The rounding error is about 1e-16 of the weights, because numbers are computed as
    |x|^2 + |x'|^2 - 2 x' x, with one matrix product.
    """
    number, root = ~is_category, np.sqrt(weights[:, None, ~is_category])
    # Centred: less cancellation, smaller rounding errors.
    left, right = (points[:, number] - 0.5) * root, (others[:, number] - 0.5) * root
    left_sq, right_sq = np.sum(left * left, axis=2), np.sum(right * right, axis=2)
    out = (-2.0 * left) @ right.transpose(0, 2, 1)
    out += left_sq[:, :, None]
    out += right_sq[:, None, :]
    np.maximum(out, 0.0, out=out)
    for d in np.flatnonzero(is_category):
        differs = points[:, None, d] != others[None, :, d]
        out += weights[:, d, None, None] * differs
    return np.asarray(out)


def pull(
    points: Array, others: Array, weights: Array, is_category: NDArray[np.bool_], by_r2: Array
) -> Array:
    """Return the gradient by ``points`` (m, D), given ``by_r2`` (S, m, k), the gradient by r^2.

    dr^2 / dx_d = 2 w_d (x_d - x'_d) needs two matrix products, and no S x m x k x D array. The
    gradient by the coordinate of a category has no meaning and is 0.
    """
    pulled = points[None] * by_r2.sum(axis=2)[:, :, None] - by_r2 @ others
    gradient = 2.0 * np.sum(weights[:, None, :] * pulled, axis=0)
    gradient[:, is_category] = 0.0
    return np.asarray(gradient)
