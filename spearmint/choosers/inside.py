"""Points of a search that meet its linear constraints, by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spearmint.choosers.encoding import from_float, to_float

if TYPE_CHECKING:
    from spearmint.choosers.tree import Tree
    from spearmint.gp.numerics import Array
    from spearmint.gp.space import Space

# Number of draws in which to look for a feasible point before it is constructed: as many scrambles
# of the Sobol sequence as are cached. Constructed points are random.
_DRAWS = 16
# Seed of the constructed points, so that they differ from the draws.
_CONSTRUCTED = 2


def inside_points(
    tree: Tree, uniform: Callable[[int, int], float], seed: int, number: int
) -> Iterator[dict[str, Any]]:
    """Yield feasible points for trial ``number``, the ones drawn by ``uniform`` first.

    Args:
        tree: The parameters, with linear constraints.
        uniform: Coordinate in [0, 1) of a number and a place.
        seed: Seed of the points that follow when few draws are feasible.
        number: Number of the trial.
    """
    names = [name for name, d in tree.distributions.items() if not d.single()]
    space = tree.space(names)
    for k in range(_DRAWS):
        at = number + (k << 32)
        cube = np.array([[uniform(at, place) for place in range(len(names))]])
        point = space.from_cube(cube)
        if space.meets(point)[0]:
            yield _named(tree, names, space, point[0])
    from spearmint.feasible import draws  # imports scipy

    rng = np.random.default_rng([seed, number, _CONSTRUCTED])
    for point in draws(space, rng, _DRAWS):
        yield _named(tree, names, space, point)


def drawn_inside(tree: Tree, rng: np.random.Generator) -> dict[str, Any]:
    """Return a random feasible point, with the parameters that are inactive."""
    from spearmint.feasible import draws

    space = tree.space(tree.searched)
    return _named(tree, tree.searched, space, draws(space, rng, 1)[0])


def completed(
    tree: Tree, chosen: Mapping[str, Any], fixed: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Return ``chosen`` with the values of ``fixed``, the others moved to be feasible.

    If no values of the others are feasible, they do not move.
    """
    from spearmint.feasible import draws, nearest

    names = [name for name in tree.searched if name in chosen]
    space = tree.space(names)
    wanted = {**chosen, **{name: value for name, value in fixed.items() if name in chosen}}
    point = _coordinates(tree, names, space, wanted)
    kept = tuple(d for d, name in enumerate(names) if name in fixed)
    found = nearest(space, point, kept)
    if found is None:
        others = draws(space, rng, _DRAWS)
        others[:, kept] = point[list(kept)]
        ends = (nearest(space, other, kept) for other in space.settle(others))
        found = next((end for end in ends if end is not None), None)
    if found is None:
        return wanted
    return {**_named(tree, names, space, found), **{k: v for k, v in wanted.items() if k in fixed}}


def is_completable(tree: Tree, fixed: Mapping[str, Any]) -> bool:
    """Return whether some values of the other parameters make ``fixed`` feasible."""
    from spearmint.feasible import nearest, starts

    names = list(tree.searched)
    space = tree.space(names)
    kept = tuple(d for d, name in enumerate(names) if name in fixed)
    for point in starts(space):
        named = {**_named(tree, names, space, point), **fixed}
        if nearest(space, _coordinates(tree, names, space, named), kept) is not None:
            return True
    return False


def _coordinates(
    tree: Tree, names: Collection[str], space: Space, params: Mapping[str, Any]
) -> Array:
    """Return the coordinates of a point; inactive and invalid values are in the centre."""
    values = [to_float(tree.distributions[name], params[name]) for name in names]
    known = np.array([np.nan if value is None else value for value in values])
    found = space.coordinates(known[None])[0]
    return np.asarray(space.settle(np.where(np.isnan(known), space.centre, found)[None])[0])


def _named(tree: Tree, names: Collection[str], space: Space, point: Array) -> dict[str, Any]:
    pairs = zip(names, space.values(point), strict=True)
    return {name: from_float(tree.distributions[name], value) for name, value in pairs}
