"""The user's guess as a factor of the acquisition."""

from __future__ import annotations

import numpy as np
from scipy.optimize import check_grad

from spearmint.acquisition.prior import LogPrior
from spearmint.gp.space import Dimension, Space

SPACE = Space(
    (Dimension(n_choices=2), Dimension(), Dimension(), Dimension()), ((1, ((0, (1.0,)),)),)
)
GUESSES = {1: (0.75, 0.1), 3: (0.25, 0.2)}


def test_it_is_highest_at_the_guess_and_ignores_inactive_dimensions() -> None:
    prior = LogPrior(SPACE, GUESSES, 5)
    points = np.array([[1, 0.75, 0.1, 0.25], [0, 0.5, 0.9, 0.25], [1, 0.5, 0.1, 0.25]])
    at_guess, inactive, away = prior(points)
    assert at_guess == inactive == 0.0
    assert away < -1.0
    assert prior.moved(points[1:2]).tolist() == [[0, 0.5, 0.9, 0.25]]
    assert prior.moved(points[2:]).tolist() == points[:1].tolist()


def test_it_is_forgotten_with_the_trials() -> None:
    far = np.array([[1, 0.0, 0.1, 1.0]])
    values = [float(LogPrior(SPACE, GUESSES, n)(far)[0]) for n in (0, 1, 10, 100, 1000)]
    assert values == sorted(values)
    assert values[0] == values[1]
    assert np.allclose(np.array(values[1:]) * [1, 10, 100, 1000], values[1])
    assert values[-1] > -0.1


def test_its_gradient_is_that_of_its_value() -> None:
    prior = LogPrior(SPACE, GUESSES, 3)
    for point in np.random.default_rng(1).random((4, 4)):
        point[0] = 1.0

        def value(x: np.ndarray) -> float:
            return float(prior(x[None])[0])

        def slope(x: np.ndarray) -> np.ndarray:
            return prior.with_gradient(x[None])[1][0]

        assert check_grad(value, slope, point) < 1e-4


def test_a_tiny_spread_does_not_overflow() -> None:
    prior = LogPrior(SPACE, {1: (0.75, 1e-300)}, 2)
    points = np.array([[1, 0.75, 0.5, 0.5], [1, 0.25, 0.5, 0.5]])
    with np.errstate(all="raise", under="ignore"):
        values, gradients = prior.with_gradient(points)
    assert values[0] == 0.0
    assert values[1] < -1.0
    assert np.array_equal(gradients, np.zeros((2, 4)))
