"""Portfolios of points for several problems."""

from __future__ import annotations

import numpy as np
import pytest

from spearmint.acquisition.portfolio import portfolio
from spearmint.gp.predict import predict
from spearmint.gp.space import Dimension, Space

LINE = Space((Dimension(low=0.0, high=1.0), Dimension(low=0.0, high=1.0)))


def problem(centre: float, scale: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(seed).random((25, 2))
    return points, scale * np.sum((points - centre) ** 2, axis=1)


def test_prediction_follows_the_function() -> None:
    points, y = problem(0.3, 50.0, 0)
    at = np.array([[0.3, 0.3], [0.9, 0.9]])
    (low, high), _ = predict(LINE, points, y, at)
    z = (50.0 * np.sum((at - 0.3) ** 2, axis=1) - y.mean()) / y.std()
    assert [low, high] == pytest.approx(z, abs=0.1)


def test_the_first_point_is_good_everywhere_whatever_the_scale() -> None:
    problems = [problem(c, s, i) for i, (c, s) in enumerate(((0.4, 1.0), (0.5, 1e6), (0.6, 1e-6)))]
    (first,) = portfolio(LINE, problems, 1)
    assert np.abs(first - 0.5).max() < 0.2


def test_problems_apart_get_a_point_each() -> None:
    problems = [problem(0.1, 1.0, 1), problem(0.9, 1.0, 2)]
    chosen = portfolio(LINE, problems, 2)
    assert sorted(np.round(point.mean()) for point in chosen) == [0.0, 1.0]


def test_no_point_comes_twice_and_none_is_made_up() -> None:
    problems = [problem(0.5, 1.0, 3)] * 3
    chosen = portfolio(LINE, problems, 10)
    assert len(chosen) == 3, "the three best points of the only problem"
    assert {tuple(point) for point in chosen} <= {tuple(point) for point in problems[0][0]}


def test_what_was_hardly_searched_says_nothing() -> None:
    points, y = problem(0.5, 1.0, 4)
    assert portfolio(LINE, [(points[:4], y[:4])], 3).shape == (0, 2)
    assert portfolio(LINE, [], 3).shape == (0, 2)
