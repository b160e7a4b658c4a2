"""The branches of a conditional space that differ in the linear constraints that count."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice, product

import numpy as np

from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Space, levels

# Maximum number of combinations of values that select a branch.
_MOST = 512


@dataclass(frozen=True)
class Branch:
    """Points with the same values in the dimensions on which the linear constraints depend.

    Attributes:
        fixed: The native value (categories: the index) of each of these dimensions.
        rows: The constraints that count.
    """

    fixed: dict[int, float]
    rows: tuple[Row, ...]


def branches(space: Space) -> list[Branch]:
    """Return the branches with different constraints; one without conditions.

    Of many combinations of values, 512 are looked at.
    """
    used = {d for row in space.linear for d in row.at}
    needed = {other for d, tests in space.conditions if d in used for other, _ in tests}
    if not needed:
        return [Branch({}, space.linear)]
    parents = sorted(needed)
    every = product(*(levels(space.dimensions[d]) for d in parents))
    found: dict[object, Branch] = {}
    for coordinates in islice(every, _MOST):
        point = space.centre.copy()
        point[parents] = coordinates
        branch = branch_at(space, space.settle(point[None])[0])
        in_rows = tuple(v for d, v in branch.fixed.items() if d in used)
        found.setdefault((branch.rows, in_rows), branch)
    return list(found.values())


def branch_at(space: Space, point: Array) -> Branch:
    """Return the branch of one valid point."""
    used = {d for row in space.linear for d in row.at}
    needed = {other for d, tests in space.conditions if d in used for other, _ in tests}
    active = space.active(point[None])[0]
    fixed = {d: float(space.dimensions[d].value(point[[d]])[0]) for d in sorted(needed)}
    return Branch(fixed, tuple(row for row in space.linear if active[list(row.at)].all()))


def with_fixed(space: Space, points: Array, branch: Branch) -> Array:
    """Return ``points`` with the values that select ``branch``."""
    out = points.copy()
    for d, value in branch.fixed.items():
        out[:, d] = space.dimensions[d].coordinate(np.array([value]))
    return out
