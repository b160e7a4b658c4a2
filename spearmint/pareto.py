"""Points that no other point dominates, for trials with several objectives."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Losses = tuple[float, ...]
"""Objectives of a trial, each to be minimised."""
# Points that are compared with the front at once.
_BLOCK = 256


def dominates(losses: Losses, others: Losses) -> bool:
    """Return whether ``losses`` are at most ``others``, and one is less."""
    pairs = zip(losses, others, strict=True)
    return losses != others and all(mine <= other for mine, other in pairs)


def front(points: Sequence[Losses]) -> list[int]:
    """Return the indices of the Pareto front, in ascending order of the first objective.

    Of equal points it has the first. A point with a value that is not finite is not on it.
    """
    finite = [i for i, losses in enumerate(points) if all(map(math.isfinite, losses))]
    # A point can only be dominated by one that is before it in this order.
    order = sorted(finite, key=lambda i: (points[i], i))
    if not order:
        return []
    ranked = [points[i] for i in order]
    kept = _of_few(ranked) if len(ranked[0]) <= 3 else _of_many(ranked)
    return [order[k] for k in kept]


def _of_few(ranked: Sequence[Losses]) -> list[int]:
    """Return the front of sorted points with two or three objectives.

    The steps are the front of the last two objectives so far: Kung, Luccio and Preparata 1975
    (J. ACM 22:469), section 3.
    """
    found: list[int] = []
    seconds: list[float] = []  # ascending
    thirds: list[float] = []  # descending
    for k, losses in enumerate(ranked):
        second, third = (*losses[1:], 0.0, 0.0)[:2]
        at = bisect_right(seconds, second)
        if at and thirds[at - 1] <= third:
            continue
        found.append(k)
        end = at
        while end < len(thirds) and thirds[end] >= third:
            end += 1
        seconds[at:end], thirds[at:end] = [second], [third]
    return found


def _of_many(ranked: Sequence[Losses]) -> list[int]:
    """Return the front of sorted points, in blocks; the time is quadratic, but in numpy."""
    import numpy as np  # slow to import, and seldom needed

    every = np.array(ranked)
    # All before a point are at most equal in the first objective, so that it needs no comparison.
    columns = every[:, 1:].T
    found = np.zeros(0, dtype=np.intp)
    for start in range(0, len(every), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(every)))
        block = block[~_are_covered(columns[:, found], columns[:, block]).any(axis=0)]
        later = _are_covered(columns[:, block], columns[:, block])
        found = np.append(found, block[~np.triu(later, 1).any(axis=0)])
    return [int(k) for k in found]


def _are_covered(rivals: Array, points: Array) -> NDArray[np.bool_]:
    """Return whether each rival is at most the point in all objectives, ``(rivals, points)``."""
    found: NDArray[np.bool_] = rivals[0][:, None] <= points[0]
    for mine, others in zip(rivals[1:], points[1:], strict=True):
        found &= mine[:, None] <= others
    return found
