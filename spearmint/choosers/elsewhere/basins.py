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
    same = minima[(minima[:, category] == point[category]).all(axis=1)]
    return len(same) > 0 and bool((_hills(past, point, same) <= _HILL * spread).any())


def _hills(past: History, start: Array, ends: Array) -> Array:
    """Return the heights of the lines to ``ends`` (k, D) above the higher end, shape ``(k,)``."""
    steps = np.linspace(0.0, 1.0, _BETWEEN + 2)[:, None]
    lines = start * (1.0 - steps) + ends[:, None] * steps
    # Exactly equal, because categories are compared.
    lines = np.where(past.space.is_category, start, lines).reshape(-1, len(start))
    means = predict(past.space, past.points, past.y, lines)[0]  # one fit, for all lines
    heights = means.reshape(len(ends), -1) * past.y.std()
    return np.asarray(heights[:, 1:-1].max(axis=1) - np.maximum(heights[:, 0], heights[:, -1]))
