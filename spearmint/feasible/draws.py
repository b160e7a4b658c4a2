"""Random feasible points, also of a part of the space that is hit by no random point."""

from __future__ import annotations

import numpy as np

from spearmint.errors import InputError
from spearmint.feasible.pull import pull
from spearmint.feasible.starts import starts
from spearmint.feasible.sweep import constrained, sweep
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

# Number of random points of which the feasible ones are used.
_TRIED = 1024
# Moves along each dimension: from the starts, and of candidates that were pulled.
_SPREAD, _MIXED = 12, 3
# With fewer feasible points than this share, half of the others are mixed and not only pulled: they
# would all be at limits.
_FEW = 0.25


def draws(space: Space, rng: np.random.Generator, count: int) -> Array:
    """Return ``count`` random feasible points, shape ``(count, D)``.

    Raises:
        InputError: No point is feasible.
    """
    every = space.from_cube(rng.random((max(_TRIED, 2 * count), len(space))))
    inside = every[space.meets(every)]
    if len(inside) >= count:
        return inside[:count]
    known = np.concatenate((inside, starts(space)))
    if not len(known):
        raise InputError("no point meets the linear constraints", "Relax them.")
    more = known[rng.integers(len(known), size=count - len(inside))]
    fresh = space.unsettled(rng.random(more.shape))
    more = space.settle(np.where(constrained(space), more, fresh))
    return np.concatenate((inside, sweep(space, more, rng, _SPREAD)))


def within(
    space: Space, points: Array, rng: np.random.Generator, near: Array | None = None
) -> Array:
    """Return ``points`` (m, D), those that are not feasible moved to where they are.

    Args:
        space: The space.
        points: Valid points.
        rng: The source of randomness.
        near: A point for each of ``points``, towards which to move if it is feasible.
    """
    if not space.linear:
        return points
    outside = np.flatnonzero(~space.meets(points))
    if not len(outside):
        return points
    inside = np.delete(points, outside, axis=0)
    known = inside if len(inside) >= len(outside) else draws(space, rng, len(outside))
    to = known[rng.integers(len(known), size=len(outside))]
    if near is not None:
        ok = space.meets(near[outside])
        to[ok] = near[outside][ok]
    moved = pull(space, points[outside], to)
    if near is None and len(inside) < _FEW * len(points):
        moved[::2] = sweep(space, moved[::2], rng, _MIXED)
    out = points.copy()
    out[outside] = moved
    return out
