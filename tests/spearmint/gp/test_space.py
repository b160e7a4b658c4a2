from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spearmint.gp.space import Dimension, Space, levels

DIMENSIONS = [
    Dimension(low=-5.0, high=10.0),
    Dimension(low=1e-6, high=10.0, log=True),
    Dimension(low=-1e308, high=1e308),
    Dimension(low=-0.5, high=0.7, step=0.3),
    Dimension(low=3, high=7, step=1),
    Dimension(low=1, high=1024, log=True, step=1),
    Dimension(low=0, high=2**60, step=1),
    Dimension(low=-7, high=8, step=5),
    Dimension(n_choices=4),
]


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=str)
@given(u=st.floats(0.0, 1.0, exclude_max=True))
def test_every_point_of_the_cube_is_a_legal_value(dimension: Dimension, u: float) -> None:
    coordinate = dimension.from_cube(np.array([u]))
    value = float(dimension.value(coordinate)[0])
    if dimension.is_category:
        assert value in range(dimension.n_choices)
        return
    assert dimension.low <= value <= dimension.high
    if dimension.step:
        steps = (value - dimension.low) / dimension.step
        assert steps == pytest.approx(round(steps), abs=1e-8)
    assert dimension.snap(coordinate) == pytest.approx(coordinate, abs=1e-12)


@pytest.mark.parametrize("dimension", DIMENSIONS, ids=str)
@given(u=st.floats(0.0, 1.0, exclude_max=True))
def test_value_and_coordinate_invert_each_other(dimension: Dimension, u: float) -> None:
    value = dimension.value(dimension.from_cube(np.array([u])))
    back = dimension.value(dimension.coordinate(value))
    size = 1.0 if dimension.is_category else max(abs(dimension.low), abs(dimension.high))
    np.testing.assert_allclose(back, value, rtol=1e-9, atol=1e-9 * size)


def test_all_levels_are_equally_likely() -> None:
    dimension = Dimension(low=0, high=9, step=1)
    u = (np.arange(1000) + 0.5) / 1000
    counts = np.bincount(dimension.value(dimension.from_cube(u)).astype(int))
    assert counts.tolist() == [100] * 10


def test_a_logarithmic_scale_is_uniform_in_the_exponent() -> None:
    dimension = Dimension(low=1e-4, high=1.0, log=True)
    np.testing.assert_allclose(
        dimension.value(np.array([0.0, 0.25, 0.5, 1.0])), [1e-4, 1e-3, 1e-2, 1.0]
    )


def test_levels_are_the_coordinates_of_all_values() -> None:
    np.testing.assert_allclose(levels(Dimension(low=2, high=4, step=1)), [1 / 6, 1 / 2, 5 / 6])
    assert list(levels(Dimension(n_choices=3))) == [0.0, 1.0, 2.0]


def test_space_knows_what_moves_and_how_many_points_there_are() -> None:
    small = Space((Dimension(n_choices=3), Dimension(low=0, high=4, step=1)))
    assert small.n_points == 15
    assert small.movable.tolist() == []
    mixed = Space((*small.dimensions, Dimension(), Dimension(low=0, high=100, step=1)))
    assert mixed.n_points == np.inf
    assert mixed.movable.tolist() == [2, 3]
    assert mixed.fixed.tolist() == [0, 1]
    assert mixed.is_category.tolist() == [True, False, False, False]


def test_neighbouring_floats_on_a_log_scale_have_one_coordinate() -> None:
    dimension = Dimension(low=9.0, high=float(np.nextafter(9.0, 10.0)), log=True)
    assert dimension.coordinate(np.array([dimension.low, dimension.high])).tolist() == [0.0, 0.0]


def test_inactive_dimensions_are_in_their_centre() -> None:
    """A number is active with the second category, another with level 2 or 3 of that number."""
    levels = Dimension(low=1.0, high=3.0, step=1.0)
    space = Space(
        (Dimension(n_choices=2), levels, Dimension(), Dimension()),
        ((1, ((0, (1.0,)),)), (2, ((1, (2.0, 3.0)), (0, (1.0,))))),
    )
    middle = float(levels.coordinate(np.array([2.0]))[0])
    points = space.from_cube(np.random.default_rng(0).random((64, 4)))
    active = space.active(points)
    assert active[:, [0, 3]].all()
    assert np.array_equal(active[:, 1], points[:, 0] == 1.0)
    assert np.array_equal(active[:, 2], active[:, 1] & (points[:, 1] > 1.0 / 3.0))
    assert np.all(points[~active[:, 1], 1] == middle)
    assert np.all(points[~active[:, 2], 2] == 0.5)
    assert set(np.unique(active[:, 2])) == {False, True}
    assert np.array_equal(space.snap(points), points)
    assert space.may_repeat
    assert space.together(points).tolist() == [4.0, 4.0, 4.0, 4.0]
    assert space.together(points[~active[:, 2]]).tolist()[3] == 3.0
    assert space.together(points[~active[:, 1]]).tolist() == [2.0, 4.0, 4.0, 2.0]
    assert not Space((Dimension(),)).may_repeat
