"""Feasible points from nothing, and why there are none."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from spearmint.feasible.branches import Branch, branch_at, branches, with_fixed
from spearmint.feasible.program import TOLERANCE, Program
from spearmint.feasible.pull import pull
from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Space

# Number of points from different targets, shared by the branches.
_POINTS = 16
# Below this margin, in units of a scaled constraint, FLOAT variables have no room: the constraints
# are an equality of real numbers, or the solver's tolerance is larger.
_NO_ROOM = 10.0 * TOLERANCE


@lru_cache(maxsize=16)
def starts(space: Space) -> Array:
    """Return feasible points ``(k, D)`` of different branches; none if there are none.

    The same space gives the same points.
    """
    rng = np.random.default_rng(0)
    known = branches(space)
    found: list[Array] = []
    for branch in (known[i] for i in rng.permutation(len(known))):
        if len(found) >= _POINTS:
            break
        for _ in range(max(1, _POINTS // len(known))):
            point = space.from_cube(with_fixed(space, rng.random((1, len(space))), branch))
            point = space.settle(with_fixed(space, point, branch))
            near = nearest(space, point[0])
            if near is None:
                break
            found.append(near)
    return np.array(found).reshape(-1, len(space))


def nearest(space: Space, point: Array, kept: tuple[int, ...] = ()) -> Array | None:
    """Return a feasible point near a valid one, in its branch; None if there is none.

    Args:
        space: The space.
        point: Coordinates, shape ``(D,)``.
        kept: Dimensions whose value does not change.
    """
    if space.meets(point[None], loose=bool(kept))[0]:
        return point
    branch = branch_at(space, point)
    values = np.array(space.values(point))
    fixed = {**branch.fixed, **{d: float(values[d]) for d in kept}}
    program = Program(space, branch.rows, fixed)
    inner = program.margin()
    if inner is None or (inner[0] <= _NO_ROOM and not kept):
        return None
    near = program.nearest(values[program.free], min(_NO_ROOM, 0.5 * inner[0]))
    ends = [_placed(space, point, program, x) for x in (near, inner[1]) if x is not None]
    if kept:
        return next((end for end in ends if space.meets(end[None], loose=True)[0]), None)
    found = np.asarray(pull(space, ends[0][None], ends[-1][None])[0])
    return found if space.meets(found[None])[0] else None


def _placed(space: Space, point: Array, program: Program, values: Array) -> Array:
    out = point.copy()
    for d, value in zip(program.free, values, strict=True):
        dim = space.dimensions[d]
        out[d] = dim.coordinate(np.array([np.clip(value, dim.low, dim.high)]))[0]
    return np.asarray(space.snap(out[None])[0])


def conflict(space: Space) -> tuple[Row, ...]:
    """Return constraints that no point meets together, as few as possible; empty if one does."""
    known = branches(space)
    if any(_has_room(space, branch, branch.rows) for branch in known):
        return ()
    needed = list(max(known, key=lambda branch: -len(branch.rows)).rows)
    for row in tuple(needed):
        fewer = tuple(other for other in needed if other != row)
        if not any(_has_room(space, each, fewer) for each in known):
            needed.remove(row)
    return tuple(needed)


def _has_room(space: Space, branch: Branch, rows: tuple[Row, ...]) -> bool:
    """Return whether a point of ``branch`` meets those of ``rows`` that count there."""
    found = Program(space, [row for row in rows if row in branch.rows], branch.fixed).margin()
    return found is not None and found[0] > _NO_ROOM
