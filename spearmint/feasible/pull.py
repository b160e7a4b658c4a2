"""Move points into the feasible part of a space, along lines to feasible points."""

from __future__ import annotations

from itertools import product

import numpy as np

from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

# Halvings of a line: the end is within 1e-9 of the limit.
_HALVINGS = 30
# Maximum number of whole numbers that are rounded in both directions.
_MOST_ROUNDED = 8


def pull(space: Space, points: Array, inner: Array) -> Array:
    """Return valid points on the lines from ``points`` to feasible points, as far out as possible.

    The end of a line has the categories of its point if it is feasible with them.

    Args:
        space: The space.
        points: Points, shape ``(m, D)``.
        inner: A feasible point for each of them, shape ``(m, D)``.
    """
    points = space.snap(points)
    outside = np.flatnonzero(~space.meets(points))
    if not len(outside):
        return points
    out = points.copy()
    far, near = points[outside], inner[outside].copy()
    branched = np.where(space.is_category, far, near)
    same = space.meets(space.snap(branched))
    near[same] = branched[same]
    far = np.where(space.is_category, near, far)
    low, high = np.zeros((len(far), 1)), np.ones((len(far), 1))
    best = space.snap(near)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        there = space.snap(near + middle * (far - near))
        ok = space.meets(there)
        best[ok] = there[ok]
        low, high = np.where(ok[:, None], middle, low), np.where(ok[:, None], high, middle)
    out[outside] = best
    return out


def rounded(space: Space, point: Array) -> Array:
    """Return the feasible point nearest to ``point`` (D,) with whole numbers rounded up or down.

    If there is none, or more than eight whole numbers are in constraints, return the valid point
    nearest to ``point``.
    """
    nearest = np.asarray(space.snap(point[None])[0])
    used = {d for row in space.linear for d in row.at}
    whole = [d for d in space.movable if space.dimensions[d].step and d in used]
    if space.meets(nearest[None])[0] or not 0 < len(whole) <= _MOST_ROUNDED:
        return nearest
    corners = np.repeat(point[None], 2 ** len(whole), axis=0)
    signs = np.array(list(product((-0.5, 0.5), repeat=len(whole))))
    for k, d in enumerate(whole):
        dim = space.dimensions[d]
        native = dim.smooth(point[[d]])[0] + signs[:, k] * dim.step
        corners[:, d] = dim.coordinate(np.clip(native, dim.low, dim.high))
    corners = space.snap(corners)
    corners = corners[space.meets(corners)]
    if not len(corners):
        return nearest
    return np.asarray(corners[np.argmin(np.abs(corners - point).sum(axis=1))])
