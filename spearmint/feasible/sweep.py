"""Spread feasible points over the feasible part: move along one dimension after the other.

Each move draws a coordinate uniformly from all that are feasible with the others fixed. Many moves
make the points uniform: hit-and-run along the axes, Smith 1984 (Operations Research 32:1296).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Space, levels

_ROUNDING = 1e-9


def constrained(space: Space) -> NDArray[np.bool_]:
    """Return which dimensions are in linear constraints or select their branch, shape ``(D,)``."""
    out = np.zeros(len(space), dtype=bool)
    out[[d for row in space.linear for d in row.at]] = True
    for d, tests in space.conditions:
        if out[d]:
            out[[other for other, _ in tests]] = True
    return out


def sweep(space: Space, points: Array, rng: np.random.Generator, count: int) -> Array:
    """Return feasible points after ``count`` moves along each constrained dimension.

    Args:
        space: The space.
        points: Feasible points, shape ``(m, D)``.
        rng: The source of randomness.
        count: Number of moves along each dimension.
    """
    points, dims = points.copy(), np.flatnonzero(constrained(space))
    equal = [row for row in space.linear if row.is_equal and len(row.at) > 1]
    for _ in range(count):
        for d in rng.permutation(dims):
            move = _other_category if space.is_category[d] else _along
            _accept(space, points, move(space, points, int(d), rng), rng)
        for row in equal:
            _accept(space, points, _exchanged(space, points, row, rng), rng)
    return points


def _accept(space: Space, points: Array, moved: Array, rng: np.random.Generator) -> None:
    """Store the moved points that are feasible; a branch that they enter has random values."""
    if space.conditions:
        fresh = space.active(moved) & ~space.active(points)
        moved = np.where(fresh, space.unsettled(rng.random(moved.shape)), moved)
    moved = space.snap(moved)
    ok = space.meets(moved)
    points[ok] = moved[ok]


def _other_category(space: Space, points: Array, d: int, rng: np.random.Generator) -> Array:
    moved = points.copy()
    legal = np.array(levels(space.dimensions[d]))
    moved[:, d] = legal[rng.integers(len(legal), size=len(points))]
    return moved


def _along(space: Space, points: Array, d: int, rng: np.random.Generator) -> Array:
    """Return points with a uniform coordinate ``d`` of those that are feasible."""
    dim, moved = space.dimensions[d], points.copy()
    low, high = np.full(len(points), dim.low), np.full(len(points), dim.high)
    for row in space.linear:
        if d in row.at:
            low, high = _cut(space, points, d, row, low, high)
    if dim.step:
        first = np.ceil((low - dim.low) / dim.step - _ROUNDING)
        last = np.floor((high - dim.low) / dim.step + _ROUNDING)
        low, high = dim.low + dim.step * (first - 0.5), dim.low + dim.step * (last + 0.5)
    u, ok = rng.random(len(points)), low <= high
    start, end = dim.coordinate(low[ok]), dim.coordinate(high[ok])
    at = start + u[ok] * (end - start)
    if dim.step:  # not the middle of a cell outside
        inner = 0.5 * dim.step
        at = dim.coordinate(np.clip(dim.value(at), low[ok] + inner, high[ok] - inner))
    moved[ok, d] = at
    return moved


def _cut(
    space: Space, points: Array, d: int, row: Row, low: Array, high: Array
) -> tuple[Array, Array]:
    """Return the range of native values of ``d`` that is left by ``row``."""
    weight = row.weights[row.at.index(d)]
    pairs = [(w, k) for w, k in zip(row.weights, row.at, strict=True) if k != d]
    rest = sum(
        (w * space.dimensions[k].value(points[:, k]) for w, k in pairs), np.zeros(len(points))
    )
    counts = space.active(points)[:, row.at].all(axis=1) if space.conditions else True
    limit, room = (row.high - rest) / weight, row.room() / abs(weight)
    if row.is_equal or weight > 0.0:
        high = np.where(counts, np.minimum(high, limit + room), high)
    if row.is_equal or weight < 0.0:
        low = np.where(counts, np.maximum(low, limit - room), low)
    return low, high


def _exchanged(space: Space, points: Array, row: Row, rng: np.random.Generator) -> Array:
    """Return points whose values move between two dimensions, so that their sum is the same."""
    first, second = rng.choice(len(row.at), 2, replace=False)
    dims = space.dimensions[row.at[first]], space.dimensions[row.at[second]]
    ratio = row.weights[first] / row.weights[second]
    values = [dim.value(points[:, row.at[k]]) for dim, k in zip(dims, (first, second), strict=True)]
    widest = min(dims[0].high - dims[0].low, (dims[1].high - dims[1].low) / abs(ratio))
    steps = np.round(widest * rng.uniform(-1.0, 1.0, len(points)) ** 3)
    steps = np.where(steps == 0.0, rng.choice([-1.0, 1.0], len(points)), steps)
    moved = points.copy()
    for k, dim, value in zip(
        (first, second), dims, (values[0] + steps, values[1] - ratio * steps), strict=True
    ):
        moved[:, row.at[k]] = dim.coordinate(np.clip(value, dim.low, dim.high))
    return moved
