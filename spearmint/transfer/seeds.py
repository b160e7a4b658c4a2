"""The best points of earlier searches, far from each other, as the first points of a search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from spearmint.gp.numerics import Array
from spearmint.gp.space import Space
from spearmint.transfer.match import Task

# Points are among this share of the trials of an earlier search, or among this many.
_BEST_SHARE, _LEAST = 0.2, 3
# Minimum difference of two points in at least one shared coordinate.
_APART = 0.15


def n_seeds(n_initial: int, n_tasks: int) -> int:
    """Return how many of the first ``n_initial`` points earlier searches give: one each.

    It is at most a third: the others show whether the earlier searches mislead.
    """
    return min(n_tasks, -(-n_initial // 3))


def seed_points(space: Space, tasks: Sequence[Task], size: int) -> list[tuple[Task, Array]]:
    """Return at most ``size`` valid points (D,) and their searches, the best ones first.

    The searches take turns. Only feasible trials within the bounds count. The coordinates of
    dimensions that are not shared have no meaning.
    """
    chosen: list[tuple[Task, Array]] = []
    for turn in zip_longest(*(_best(space, task) for task in tasks)):
        for task, point in zip(tasks, turn, strict=True):
            if point is not None and len(chosen) < size and _is_apart(task, point, chosen):
                chosen.append((task, point))
    return chosen


def _best(space: Space, task: Task) -> list[Array]:
    """Return the best points of an earlier search within the bounds, best first."""
    shared = task.points[:, task.shared]
    inside = ((shared >= 0.0) & (shared <= 1.0) | space.is_category[task.shared]).all(axis=1)
    order = np.argsort(task.y, kind="stable")
    order = order[(inside & task.is_feasible)[order]]
    most = max(_LEAST, int(_BEST_SHARE * len(task.y)))
    return list(space.snap(np.clip(task.points[order[:most]], 0.0, _ends(space))))


def _ends(space: Space) -> Array:
    """Return the largest coordinate of each dimension, shape ``(D,)``."""
    return np.array([float(d.n_choices - 1) if d.is_category else 1.0 for d in space.dimensions])


def _is_apart(task: Task, point: Array, chosen: Sequence[tuple[Task, Array]]) -> bool:
    """Return whether ``point`` differs from each of ``chosen`` in a dimension that both share."""
    for other, known in chosen:
        both = np.intersect1d(task.shared, other.shared)
        if len(both) and np.abs(point[both] - known[both]).max() <= _APART:
            return False
    return True
