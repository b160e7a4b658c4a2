from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from spearmint.acquisition.factors import LogFeasibility, LogInverseCost, Sum
from spearmint.acquisition.grid import rank_grid
from spearmint.acquisition.log_ei import LogEI
from spearmint.gp.posterior import condition
from spearmint.gp.space import Dimension, Space

MASK = np.array([False, False, False, True])


def some_points(n: int, seed: int):
    rng = np.random.default_rng(seed)
    return np.column_stack((rng.random((n, 3)), rng.integers(2, size=n)))


@pytest.fixture
def posterior():
    points = some_points(14, 0)
    y = np.cos(7 * points[:, 0]) + points[:, 1] ** 2 + points[:, 3]
    thetas = np.array([[-0.5, 0.0, 0.3, 0.0, -5.0], [-1.0, 0.4, 0.0, 0.5, -3.0]])
    rng = np.random.default_rng(0)
    y = (y - y.mean()) / y.std()
    return condition(points, y, np.empty((0, 4)), thetas, MASK, n_fantasies=1, rng=rng)


@pytest.fixture(params=["inverse cost", "feasibility", "product"])
def acquisition(request, posterior):
    inverse_cost = LogInverseCost(posterior, unit=1.7)
    return {
        "inverse cost": inverse_cost,
        "feasibility": LogFeasibility(posterior, zero=0.2),
        "product": Sum(LogEI(posterior), inverse_cost),
    }[request.param]


def test_gradient(acquisition) -> None:
    new = some_points(6, 2)
    value, gradient = acquisition.with_gradient(new)
    np.testing.assert_allclose(value, acquisition(new), rtol=1e-10)
    for d in range(3):
        step = 1e-6 * np.eye(4)[d]
        numeric = (acquisition(new + step) - acquisition(new - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, d], numeric, rtol=1e-4, atol=1e-5)
    assert (gradient[:, 3] == 0.0).all()


def test_expected_inverse_cost_is_an_integral(posterior) -> None:
    new = some_points(4, 1)
    mean, variance = posterior.predict(new)
    expected = np.zeros(4)
    for s in range(2):
        for i in range(4):
            m, std = 1.7 * mean[s, i, 0], 1.7 * np.sqrt(variance[s, i])
            # E[1 / c], where ln c is normal.
            part, _ = quad(
                lambda t, m=m, std=std: np.exp(-t) * norm.pdf(t, m, std), m - 12, m + 12, limit=200
            )
            expected[i] += part / 2
    np.testing.assert_allclose(
        LogInverseCost(posterior, unit=1.7)(new), np.log(expected), rtol=1e-4, atol=1e-6
    )


def test_probability_of_feasibility_is_an_average_over_models(posterior) -> None:
    new = some_points(6, 4)
    mean, variance = posterior.predict(new)
    above = [norm.sf(0.2, mean[s, :, 0], np.sqrt(variance[s])) for s in range(2)]
    feasibility = LogFeasibility(posterior, zero=0.2)
    np.testing.assert_allclose(feasibility(new), np.log(np.mean(above, axis=0)), rtol=1e-8)


def test_a_point_that_is_surely_infeasible_has_a_finite_gradient(posterior) -> None:
    feasibility = LogFeasibility(posterior, zero=50.0)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, gradient = feasibility.with_gradient(posterior.points + 1e-9)
    assert (value < -100.0).all()
    assert np.isfinite(gradient).all()


def test_a_product_is_a_sum_of_logarithms(posterior) -> None:
    new = some_points(5, 3)
    ei, speed = LogEI(posterior), LogInverseCost(posterior, unit=0.3)
    np.testing.assert_allclose(Sum(ei, speed)(new), ei(new) + speed(new))


def test_the_grid_is_ranked_and_legal() -> None:
    space = Space((Dimension(), Dimension(low=0, high=9, step=1), Dimension(n_choices=3)))

    def acquisition(points):
        return -np.abs(points[:, 0] - 0.3) - (points[:, 2] != 1.0)

    acquisition.with_gradient = None
    ranked = rank_grid(acquisition, space, np.random.default_rng(0), n_points=700)
    assert ranked.shape == (700, 3)
    assert (np.diff(acquisition(ranked)) <= 0.0).all()
    assert ranked[0, 0] == pytest.approx(0.3, abs=0.02)
    np.testing.assert_allclose(space.snap(ranked), ranked, atol=1e-12)
