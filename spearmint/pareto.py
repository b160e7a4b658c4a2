"""Points that no other point dominates, for trials with several objectives."""

from __future__ import annotations

import math
from collections.abc import Sequence

Losses = tuple[float, ...]
"""Objectives of a trial, each to be minimised."""


def dominates(losses: Losses, others: Losses) -> bool:
    """Return whether ``losses`` are at most ``others``, and one is less."""
    pairs = zip(losses, others, strict=True)
    return losses != others and all(mine <= other for mine, other in pairs)


def front(points: Sequence[Losses]) -> list[int]:
    """Return the indices of the Pareto front, in ascending order of the first objective.

    Of equal points it has the first. A point with a value that is not finite is not on it.
    """
    finite = [i for i, losses in enumerate(points) if all(map(math.isfinite, losses))]
    found: list[int] = []
    # A point can only be dominated by one that is before it in this order.
    for i in sorted(finite, key=lambda i: (points[i], i)):
        rivals = [points[j] for j in found]
        if not any(rival == points[i] or dominates(rival, points[i]) for rival in rivals):
            found.append(i)
    return found
