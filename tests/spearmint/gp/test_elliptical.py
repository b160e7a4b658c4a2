from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import kstest

from spearmint.gp.elliptical import StudentT, elliptical_update
from spearmint.gp.numerics import Array


def chain(log_density: Callable[[Array], float], around: StudentT, n: int, seed: int = 0) -> Array:
    rng, states = np.random.default_rng(seed), []
    state, height = around.centre, log_density(around.centre)
    for _ in range(n):
        state, height = elliptical_update(log_density, state, height, around, rng)
        assert height == log_density(state)
        states.append(state)
    return np.array(states)


def test_white_coordinates_and_back() -> None:
    around = StudentT(np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.0, 0.1]]))
    state = np.array([0.3, 0.4])
    np.testing.assert_allclose(around.state(around.whitened(state)), state)
    np.testing.assert_array_equal(around.whitened(around.centre), 0.0)


@pytest.mark.parametrize("length", [0.3, 1.0, 4.0])
def test_a_correlated_normal_is_sampled_whatever_resembles_it(length: float) -> None:
    covariance = np.array([[2.0, 0.9], [0.9, 0.5]])
    mean, precision = np.array([1.0, -3.0]), np.linalg.inv(covariance)

    def log_density(x: Array) -> float:
        return float(-0.5 * (x - mean) @ precision @ (x - mean))

    around = StudentT(mean + 0.3, length * np.diag([1.4, 0.7]))
    draws = chain(log_density, around, 12_000)[20:]
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.12)
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.15, atol=0.05)


def test_a_skewed_density_with_a_wall() -> None:
    def log_density(x: Array) -> float:
        return float(-x[0]) if x[0] >= 0.0 else -np.inf

    draws = chain(log_density, StudentT(np.array([0.5]), np.eye(1)), 8000, seed=1)
    assert draws.min() >= 0.0
    assert kstest(draws[::8, 0], "expon").pvalue > 0.001


def test_a_good_resemblance_needs_few_evaluations() -> None:
    count = 0

    def log_density(x: Array) -> float:
        nonlocal count
        count += 1
        return float(-0.5 * x @ x)

    draws = chain(log_density, StudentT(np.zeros(6), np.eye(6)), 1000)
    assert count / 2 < 1500  # the test calls it as often
    lagged = np.mean(draws[1:] * draws[:-1], axis=0) / np.mean(draws**2, axis=0)
    assert np.abs(lagged).max() < 0.2


def test_nowhere_to_move() -> None:
    """A state that is higher than all others in reach stays."""
    at = np.array([0.25])

    def log_density(x: Array) -> float:
        return 0.0 if x[0] == at[0] else -np.inf

    around, rng = StudentT(np.zeros(1), np.eye(1)), np.random.default_rng(0)
    state, height = elliptical_update(log_density, at, 0.0, around, rng)
    np.testing.assert_allclose(state, at, atol=1e-12)
    assert height == 0.0
