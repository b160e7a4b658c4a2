"""Whether a search has converged, by its last trials."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from spearmint.gp.numerics import Array

# A search has converged if ``_NEAR_ENOUGH`` of its last ``_WINDOW`` trials are at the best one, and
# these lowered the best value by at most this share of the spread of the others.
_WINDOW, _NEAR_ENOUGH, _GAIN = 5, 4, 1e-3
# This distance, times the square root of the dimensions, is still at a point.
_NEAR = 0.02
# The model has to agree: it expects less than this improvement, in standard deviations of the
# (warped) objective, and has learned that there is no noise.
_EXPECTED = 3e-4


def has_settled(points: Array, y: Array) -> bool:
    """Return whether the last of some trials are at their best point and gain next to nothing.

    Args:
        points: Their coordinates by trial number, shape ``(n, D)``.
        y: Their values, to be minimised, shape ``(n,)``.
    """
    if len(y) <= _WINDOW:
        return False
    best = int(np.argmin(y))
    is_near = are_at(points, points[[best]])
    if is_near[-_WINDOW:].sum() < _NEAR_ENOUGH or is_near.all():
        return False
    spread = float(np.median(y[~is_near])) - y[best]
    return bool(y[:-_WINDOW].min() - y[best] <= _GAIN * spread)


def is_negligible(log_improvement: float) -> bool:
    """Return whether an expected improvement in standard deviations is too small for a trial."""
    return log_improvement < math.log(_EXPECTED)


def are_at(points: Array, minima: Array, reach: float = 1.0) -> NDArray[np.bool_]:
    """Return which of ``points`` (m, D) are at one of ``minima`` (k, D), shape ``(m,)``.

    ``reach`` is a factor of the distance.
    """
    if not len(minima):
        return np.zeros(len(points), dtype=bool)
    squares = np.sum((points[:, None] - minima[None]) ** 2, axis=2)
    return np.asarray(squares.min(axis=1) <= (reach * _NEAR) ** 2 * points.shape[1])
