"""Maximise the acquisition: rank many candidates, then refine the best of them together.

1. Rank Sobol points over the whole space and perturbations of the best points.
2. Refine the best candidates, not too near each other, by one joint L-BFGS-B run. The sum of their
   log EI is a sum of independent terms, so each start finds its own maximum.
3. Step integers with few levels and categories to better neighbours.

With linear constraints, candidates are moved into the feasible part, the ends of the joint run are
pulled back along their lines, and the best of them slide along the limits by SLSQP.

Source: the original Spearmint refines the best points of a grid one by one; the joint run is that
of BoTorch, Balandat et al. 2020 (arXiv:1910.06403).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.stats import qmc

from spearmint.feasible import pull, slide, within
from spearmint.gp.input_warp import InputWarp
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space, distance, levels

# Minimum distance of two starts in at least one coordinate.
_APART = 0.05
# Points that differ by no more than this in every coordinate count as equal.
SAME = 1e-7
_LOCAL = 320
# Number of candidates that are ranked a second time.
_LEADERS = 256
# Number of starts that are refined to the end, after a quarter of the evaluations was used for all.
# In 40 searches on four functions, 6 gave the same result as 20.
_FINALISTS = 6
# Number of points that step between levels, of steps for each, and of neighbours for each step.
STEPPING = 4
_MAX_STEPS = 3
_MAX_NEIGHBOURS = 64


class Acquisition(Protocol):
    """A function to maximise."""

    def __call__(self, points: Array) -> Array:
        """Return the values at ``points`` (m, D)."""
        ...

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the values and their gradients (m, D)."""
        ...


def candidates(
    space: Space,
    best: Array,
    rng: np.random.Generator,
    *,
    n_global: int,
    input_warp: InputWarp | None = None,
) -> Array:
    """Return valid points: ``n_global`` (a power of two) everywhere, and others near ``best``."""
    everywhere = spread(space, qmc.Sobol(len(space), rng=rng).random(n_global), input_warp)
    if space.linear:
        everywhere, best = within(space, everywhere, rng), within(space, best, rng)
    return np.concatenate((everywhere, _perturbed(space, best, rng)))


def spread(space: Space, cube: Array, input_warp: InputWarp | None) -> Array:
    """Return valid points for rows of [0, 1)^D, every second one even in warped coordinates.

    In warped coordinates the model varies equally everywhere.
    """
    points = space.from_cube(cube)
    if input_warp:
        points[::2] = space.snap(input_warp.inverse(points[::2]))
    return points


def _perturbed(space: Space, best: Array, rng: np.random.Generator) -> Array:
    """Return points near rows of ``best`` (half of them near the first row), at all scales."""
    rows = rng.integers(len(best), size=_LOCAL) * (rng.random(_LOCAL) < 0.5)
    points = best[rows]
    scale = 10.0 ** rng.uniform(-3.0, -0.5, (_LOCAL, 1))
    # The number of changed dimensions differs between points: from one on average to all.
    share = np.maximum(rng.random((_LOCAL, 1)), 1.0 / len(space))
    moved = rng.random(points.shape) < share
    out = np.clip(points + scale * moved * rng.standard_normal(points.shape), 0.0, 1.0)
    for d in space.fixed:
        legal = np.array(levels(space.dimensions[d]))
        at = np.argmin(np.abs(points[:, d, None] - legal), axis=1)
        if space.is_category[d]:
            to = rng.integers(len(legal), size=_LOCAL)
        else:
            to = np.clip(at + rng.integers(-2, 3, size=_LOCAL), 0, len(legal) - 1)
        out[:, d] = legal[np.where(rng.random(_LOCAL) < 0.35, to, at)]
    if space.conditions:  # a dimension of another branch has no value to perturb
        fresh = space.active(out) & ~space.active(points)
        out = np.where(fresh, space.unsettled(rng.random(out.shape)), out)
    out = space.snap(out)
    return within(space, out, rng, points) if space.linear else out


def maximize(
    acquisition: Acquisition,
    space: Space,
    pool: Array,
    rng: np.random.Generator,
    *,
    n_starts: int,
    max_evaluations: int,
    rough: Callable[[Array], Array] | None = None,
    n_finalists: int = _FINALISTS,
    is_ranked: bool = False,
) -> Array:
    """Return valid points, best first: the refined starts, then the whole ``pool``, ranked.

    ``rough`` is a cheaper acquisition that ranks the pool; ``acquisition`` then reranks its best.
    With ``is_ranked`` the pool is ranked already.
    """
    if not is_ranked:
        pool = pool[np.argsort(-(rough or acquisition)(pool), kind="stable")]
    if rough is not None:
        leaders = np.argsort(-acquisition(pool[:_LEADERS]), kind="stable")
        pool[:_LEADERS] = pool[leaders]
    starts = pool[apart(pool, n_starts)]
    climbed = climb(acquisition, space, starts, max_evaluations // 4)
    if space.linear:
        climbed = pull(space, climbed, starts)
    leading = np.argsort(-acquisition(climbed), kind="stable")[:n_finalists]
    finished = finish(acquisition, space, climbed[leading], max_evaluations - max_evaluations // 4)
    # Rounding and line searches can make a point worse, so the starts are ranked as well.
    top = np.concatenate((space.snap(finished), space.snap(climbed), starts))
    if len(space.fixed):
        best = np.argsort(-acquisition(top), kind="stable")[:STEPPING]
        stepped = step(acquisition, space, top[best], rng)
        stepped = space.snap(finish(acquisition, space, stepped, max_evaluations // 2))
        top = np.concatenate((stepped, top))
    ranked = top[np.argsort(-acquisition(top), kind="stable")]
    return np.concatenate((ranked, pool))


def apart(ranked: Array, n_starts: int) -> list[int]:
    """Return the indices of up to ``n_starts`` first rows that are far from each other."""
    picked = [0]
    for i in range(1, min(len(ranked), 400)):
        if len(picked) >= n_starts:
            break
        if distance(ranked[picked], ranked[i : i + 1]).min() > _APART:
            picked.append(i)
    return picked


def climb(acquisition: Acquisition, space: Space, starts: Array, max_evaluations: int) -> Array:
    """Return ``starts`` (m, D) refined by joint L-BFGS-B; levels and categories do not change."""
    moving = space.movable
    if not len(moving):
        return starts
    points = starts.copy()
    # Categories do not change, so neither does a branch that depends on one.
    is_active = space.active(points)[:, moving] if space.conditions else None

    def objective(flat: Array) -> tuple[float, Array]:
        points[:, moving] = flat.reshape(len(points), -1)
        values, gradients = acquisition.with_gradient(points)
        slopes = gradients[:, moving]
        slopes = slopes if is_active is None else slopes * is_active
        return -float(values.sum()), -slopes.ravel()

    found = minimize(
        objective,
        points[:, moving].ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * (len(points) * len(moving)),
        options={"maxfun": max_evaluations, "maxiter": max_evaluations},
    )
    points[:, moving] = found.x.reshape(len(points), -1)
    return points


def finish(acquisition: Acquisition, space: Space, points: Array, max_evaluations: int) -> Array:
    """Return ``points`` (m, D), refined as by :func:`climb`; under linear constraints by SLSQP."""
    if not space.linear:
        return climb(acquisition, space, points, max_evaluations)
    return np.array([slide(acquisition, space, each, max_evaluations) for each in points])


def step(acquisition: Acquisition, space: Space, points: Array, rng: np.random.Generator) -> Array:
    """Return ``points`` after a few steps to the best neighbour in one dimension."""
    for _ in range(_MAX_STEPS):
        around = [_neighbours(space, point, rng) for point in points]
        ends = np.cumsum([len(group) for group in around])
        values = np.split(acquisition(np.concatenate(around)), ends[:-1])
        moved = np.array([g[np.argmax(v)] for g, v in zip(around, values, strict=True)])
        if np.array_equal(moved, points):
            break
        points = moved
    return points


def _neighbours(space: Space, point: Array, rng: np.random.Generator) -> Array:
    """Return ``point`` and the valid points that are one level or one category away from it."""
    out = [point]
    for d in rng.permutation(space.fixed):
        legal = np.array(levels(space.dimensions[d]))
        at = int(np.argmin(np.abs(legal - point[d])))
        if not space.is_category[d]:
            legal, at = legal[max(0, at - 1) : at + 2], min(at, 1)
        for level in np.delete(legal, at):
            neighbour = point.copy()
            neighbour[d] = level
            out.append(neighbour)
        if len(out) > _MAX_NEIGHBOURS:
            break
    if not space.linear:
        return space.settle(np.array(out))
    around = space.settle(np.array([*out, *_exchanges(space, point)]))
    return np.asarray(around[np.append(True, space.meets(around[1:]))])


def _exchanges(space: Space, point: Array) -> list[Array]:
    """Return points that are a level away in two dimensions that have a linear constraint."""
    out = []
    pairs = {pair for row in space.linear for pair in combinations(sorted(row.at), 2)}
    few = set(space.fixed.tolist())
    for first, second in sorted(pair for pair in pairs if few.issuperset(pair)):
        for steps in product((-1, 1), repeat=2):
            moved = point.copy()
            for d, step in zip((first, second), steps, strict=True):
                legal = np.array(levels(space.dimensions[d]))
                at = int(np.argmin(np.abs(legal - point[d])))
                moved[d] = legal[min(max(at + step, 0), len(legal) - 1)]
            out.append(moved)
    return out[:_MAX_NEIGHBOURS]
