"""Maximise an acquisition under linear constraints."""

from __future__ import annotations

import numpy as np
import pytest

from spearmint.acquisition.grid import rank_grid
from spearmint.acquisition.maximize import candidates, maximize
from spearmint.acquisition.next_point import first_new
from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Dimension, Space

UNIT, MANY = Dimension(), Dimension(low=0, high=100, step=1)
FEW, RATE = Dimension(low=0, high=9, step=1), Dimension(low=1e-4, high=1, log=True)
BRANCH = (1, ((0, (1.0,)),))


def at_most(high: float, *at: int) -> Row:
    return Row(at, (1.0,) * len(at), high, size=high)


def exactly(high: float, *at: int) -> Row:
    return Row(at, (1.0,) * len(at), high, is_equal=True, is_whole=True, size=high)


SPACES = {
    "half": Space((UNIT, UNIT), linear=(at_most(1.0, 0, 1),)),
    "tiny": Space((UNIT,) * 3, linear=(at_most(0.01, 0, 1, 2),)),
    "log": Space((RATE, RATE, UNIT), linear=(Row((1, 0), (1.0, -0.01), 0.0),)),
    "many": Space((MANY, MANY, UNIT), linear=(exactly(100, 0, 1),)),
    "few": Space((FEW, FEW, FEW), linear=(exactly(9, 0, 1, 2),)),
    "branch": Space((Dimension(n_choices=2), UNIT, UNIT), (BRANCH,), (at_most(0.1, 1, 2),)),
}


class Away:
    """Minus the squared distance from a target in coordinates."""

    def __init__(self, target: Array) -> None:
        self._target = target

    def __call__(self, points: Array) -> Array:
        return self.with_gradient(points)[0]

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        away = points - self._target
        return -np.sum(away**2, axis=1), -2.0 * away


@pytest.mark.parametrize("name", SPACES)
def test_all_points_are_feasible_and_the_best_is_near_the_optimum(name: str) -> None:
    space, rng = SPACES[name], np.random.default_rng(3)
    function = Away(np.full(len(space), 0.9))
    outside = np.full((2, len(space)), 0.8)  # such as imported trials
    pool = candidates(space, space.snap(outside), rng, n_global=256)
    grid = rank_grid(function, space, rng, n_points=512)
    ranked = maximize(function, space, pool, rng, n_starts=6, max_evaluations=40)
    for points in (pool, grid, ranked):
        assert space.meets(points).all()
        assert np.array_equal(points, space.snap(points))
    many = rank_grid(function, space, rng, n_points=1 << 14)
    assert function(ranked[:1])[0] >= function(many[:1])[0] - 1e-3


def test_a_small_feasible_part_is_tried_completely() -> None:
    """A sum of three whole numbers from 0 to 9 that is 3 has 10 points."""
    space = Space((FEW,) * 3, linear=(exactly(3, 0, 1, 2),))
    rng, seen = np.random.default_rng(0), np.empty((0, 3))
    for _ in range(10):
        point = first_new(space, seen, seen, rng)
        seen = np.concatenate((seen, point[None]))
    assert space.meets(seen).all()
    assert len(np.unique(seen, axis=0)) == 10
    large = Space((MANY,) * 3, linear=(exactly(2, 0, 1, 2),))  # too large to list
    seen = np.empty((0, 3))
    for _ in range(6):
        seen = np.concatenate((seen, first_new(large, seen, seen, rng)[None]))
    assert len(np.unique(seen, axis=0)) == 6
