"""Whether a point is in the basin of a known minimum: no hill is between them.

The height between two points is the expected value of a Gaussian process of all trials. Source: the
hill-valley test of Ursem 1999 (CEC, "Multinational evolutionary algorithms"), on a model instead of
the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spearmint.gp.predict import predict

if TYPE_CHECKING:
    from spearmint.choosers.history import History
    from spearmint.gp.numerics import Array

# Number of points between the two. On Hartmann's function, hills between basins had 0.16 to 1.7 of
# the spread, and -0.08 to 0 inside of one.
_BETWEEN = 10
_HILL = 0.01


def is_in_basin(past: History, point: Array, minima: Array, spread: float) -> bool:
    """Return whether ``point`` (D,) is in the basin of one of ``minima`` (k, D).

    Args:
        past: All trials.
        point: A tried point.
        minima: Tried points.
        spread: Unit of heights, in the unit of the values.
    """
    category = past.space.is_category
    same = (minima[:, category] == point[category]).all(axis=1)
    return any(_hill(past, point, minimum) <= _HILL * spread for minimum in minima[same])


def _hill(past: History, start: Array, end: Array) -> float:
    """Return the height of the line between two points above the higher of them."""
    steps = np.linspace(0.0, 1.0, _BETWEEN + 2)[:, None]
    line = start * (1.0 - steps) + end * steps
    # Exactly equal, because categories are compared.
    line = np.where(past.space.is_category, start, line)
    heights = predict(past.space, past.points, past.y, line)[0] * past.y.std()
    return float(heights[1:-1].max() - max(heights[0], heights[-1]))
