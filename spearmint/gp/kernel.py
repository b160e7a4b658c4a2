"""The kernel: Matern 5/2 with one length scale per dimension.

========  =====================  ==================================================
symbol    name in code           meaning
========  =====================  ==================================================
x         row of ``points``      coordinates, numbers in [0, 1], categories an index
w_d       ``weights``            1 / l_d^2, l_d the length scale of dimension d
r^2       ``r2``                 sum_d w_d delta_d(x, x')^2
delta_d   ``sq_differences``     x_d - x'_d, or for categories [x_d != x'_d]
========  =====================  ==================================================

A category enters by the Hamming distance, scaled by its own length scale, so that the GP learns
how much one choice says of another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spearmint.gp.arrays import Array

# Largest array of differences held at once, in numbers: 32 MiB.
_CHUNK = 1 << 22


def matern52(r2: Array) -> Array:
    """Return the correlation at squared scaled distances ``r2``.

    Source: Rasmussen and Williams 2006, eq. 4.17 (nu = 5/2).
    """
    r = np.sqrt(5.0 * r2)
    return np.asarray((1.0 + r * (1.0 + r / 3.0)) * np.exp(-r))


def matern52_slope(r2: Array) -> tuple[Array, Array]:
    """Return the correlation and its derivative by ``r2``, which is finite at 0."""
    r = np.sqrt(5.0 * r2)
    decay = np.exp(-r)
    slope = (-5.0 / 6.0) * (1.0 + r) * decay
    return np.asarray((1.0 + r * (1.0 + r / 3.0)) * decay), np.asarray(slope)


def sq_differences(points: Array, others: Array, is_category: NDArray[np.bool_]) -> Array:
    """Return delta_d(x, x')^2 for every dimension and pair, shape ``(D, m, k)``."""
    delta = points.T[:, :, None] - others.T[:, None, :]
    out = delta * delta
    out[is_category] = delta[is_category] != 0.0
    return np.asarray(out)


def sq_distances(
    points: Array, others: Array, weights: Array, is_category: NDArray[np.bool_]
) -> Array:
    """Return r^2 of every pair under each row of ``weights`` (S, D), shape ``(S, m, k)``."""
    out = np.empty((len(weights), len(points), len(others)))
    rows = max(1, _CHUNK // max(1, others.size))
    for start in range(0, len(points), rows):
        chunk = sq_differences(points[start : start + rows], others, is_category)
        flat = weights @ chunk.reshape(len(chunk), -1)
        out[:, start : start + rows] = flat.reshape(len(weights), *chunk.shape[1:])
    return out
