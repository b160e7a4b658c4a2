"""Starts are refined at once, each by its own steps."""

from __future__ import annotations

import numpy as np

from spearmint.acquisition.ascent import ascend
from spearmint.gp.space import Dimension, Space

PLANE = Space((Dimension(), Dimension()))
EVEN = np.ones(2)


class Hill:
    """Minus a quadratic function with axes of very different lengths, and the evaluations of it."""

    def __init__(self, top: tuple[float, float], curvatures: tuple[float, float]) -> None:
        self.top, self.curvatures, self.calls = np.array(top), np.array(curvatures), 0

    def __call__(self, points):
        return -np.sum(self.curvatures * (points - self.top) ** 2, axis=1)

    def with_gradient(self, points):
        self.calls += 1
        return self(points), -2.0 * self.curvatures * (points - self.top)


def test_each_start_reaches_the_top_in_few_evaluations() -> None:
    hill = Hill((0.3, 0.7), (1.0, 100.0))
    starts = np.array([[0.9, 0.1], [0.31, 0.69], [0.0, 1.0]])
    ends, values = ascend(hill, PLANE, starts, 40, EVEN)
    np.testing.assert_allclose(ends, np.tile(hill.top, (3, 1)), atol=0.02)
    np.testing.assert_allclose(values, hill(ends))
    assert hill.calls < 20  # the ascent ends when nothing is to be gained


def test_length_scales_of_the_model_save_evaluations() -> None:
    starts = np.array([[0.9, 0.2], [0.6, 0.9]])
    gaps = []
    for scales in (EVEN, np.array([1.0, 0.1])):
        hill = Hill((0.4, 0.6), (1.0, 100.0))
        gaps.append(-ascend(hill, PLANE, starts, 5, scales)[1].min())
        assert hill.calls <= 5
    assert gaps[1] < 0.2 * gaps[0]


def test_a_top_outside_is_approached_along_the_edge() -> None:
    ends, _ = ascend(Hill((1.5, 0.25), (1.0, 5.0)), PLANE, np.array([[0.7, 0.9]]), 30, EVEN)
    np.testing.assert_allclose(ends, [[1.0, 0.25]], atol=0.02)


def test_no_value_is_lower_than_before_and_categories_stay() -> None:
    space = Space((Dimension(), Dimension(n_choices=3), Dimension()))
    rng = np.random.default_rng(2)
    starts = space.from_cube(rng.random((30, 3)))

    class Waves:
        def __call__(self, points):
            return self.with_gradient(points)[0]

        def with_gradient(self, points):
            value = np.sin(9.0 * points[:, 0]) * np.cos(7.0 * points[:, 2]) + points[:, 1]
            gradient = np.zeros_like(points)
            gradient[:, 0] = 9.0 * np.cos(9.0 * points[:, 0]) * np.cos(7.0 * points[:, 2])
            gradient[:, 2] = -7.0 * np.sin(9.0 * points[:, 0]) * np.sin(7.0 * points[:, 2])
            return value, gradient

    waves = Waves()
    for evaluations in (1, 3, 12):
        ends, values = ascend(waves, space, starts, evaluations, np.ones(3))
        assert (values >= waves(starts)).all()
        np.testing.assert_allclose(values, waves(ends))
        np.testing.assert_array_equal(ends[:, 1], starts[:, 1])
        assert ((ends >= 0.0) & (ends[:, [0, 2]] <= 1.0).all(axis=1)[:, None]).all()
    inside = ((ends[:, [0, 2]] > 0.0) & (ends[:, [0, 2]] < 1.0)).all(axis=1)
    assert np.abs(waves.with_gradient(ends[inside])[1]).max() < 0.2


def test_a_space_without_numbers_stays_where_it_is() -> None:
    space = Space((Dimension(n_choices=4), Dimension(n_choices=2)))
    starts = space.from_cube(np.random.default_rng(0).random((5, 2)))
    hill = Hill((1.0, 1.0), (1.0, 1.0))
    ends, values = ascend(hill, space, starts, 8, EVEN)
    np.testing.assert_array_equal(ends, starts)
    np.testing.assert_array_equal(values, hill(starts))
