"""Refine a point under linear constraints: SLSQP, which slides along their limits."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
from scipy.optimize import minimize

from spearmint.feasible.branches import branch_at
from spearmint.feasible.pull import pull, rounded
from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Space


class Smooth(Protocol):
    """A function to maximise, with gradients."""

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the values and their gradients at ``points`` (m, D)."""
        ...


def slide(function: Smooth, space: Space, start: Array, max_iterations: int) -> Array:
    """Return a feasible point ``(D,)`` that increases ``function``, from a feasible one.

    Whole numbers with many levels are rounded at the end; levels and categories do not change.
    Source: Kraft 1988 (DFVLR-FB 88-28, sequential least squares), as in scipy.
    """
    active = space.active(start[None])[0]
    moving = [int(d) for d in space.movable if active[d]]
    rows = [row for row in branch_at(space, start).rows if set(row.at) & set(moving)]
    if not moving:
        return start
    point = start.copy()

    def objective(x: Array) -> tuple[float, Array]:
        point[moving] = x
        value, gradient = function.with_gradient(point[None])
        return -float(value[0]), -gradient[0, moving]

    found = minimize(
        objective,
        start[moving],
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(moving),
        constraints=cast(Any, [_limit(space, start, row, moving) for row in rows]),
        options={"maxiter": max_iterations, "ftol": 1e-9},
    )
    if not np.isfinite(found.x).all():
        return start
    point[moving] = np.clip(found.x, 0.0, 1.0)
    return np.asarray(pull(space, rounded(space, point)[None], start[None])[0])


def _limit(space: Space, start: Array, row: Row, moving: list[int]) -> dict[str, Any]:
    """Return a constraint for scipy: what is left up to the limit, relative to its size."""
    at, weights = np.array(row.at), np.array(row.weights)
    place = {d: i for i, d in enumerate(moving)}

    def values(x: Array) -> tuple[Array, Array]:
        c = np.array([x[place[d]] if d in place else start[d] for d in row.at])
        pairs = [space.dimensions[d].smooth(c[[k]]) for k, d in enumerate(at)]
        fixed = [space.dimensions[d].value(c[[k]])[0] for k, d in enumerate(at)]
        moved = [d in place for d in row.at]
        value = np.where(moved, [v[0] for v, _ in pairs], fixed)
        return value, np.array([slope[0] for _, slope in pairs])

    def left(x: Array) -> float:
        return float((row.high + row.room() - weights @ values(x)[0]) / row.size)

    def slope(x: Array) -> Array:
        out, slopes = np.zeros(len(moving)), values(x)[1]
        for k, d in enumerate(row.at):
            if d in place:
                out[place[d]] = -weights[k] * slopes[k] / row.size
        return out

    return {"type": "eq" if row.is_equal else "ineq", "fun": left, "jac": slope}
