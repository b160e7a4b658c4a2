from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from spearmint.acquisition.log_ei import LogEI, NegativeMean, _value, log_h
from spearmint.gp.input_warp import InputWarp
from spearmint.gp.posterior import condition


@pytest.mark.parametrize("u", [-30.0, -8.0, -1.5, -1.0, -0.99, 0.0, 0.7, 5.0])
def test_log_h_is_the_log_of_an_integral(u: float) -> None:
    """h(u) = E max(u - z, 0) = phi(u) * int_0^inf t exp(u t - t^2 / 2) dt."""
    width = 40.0 / max(1.0, -u)
    integral, _ = quad(lambda t: t * np.exp(u * t - 0.5 * t * t), 0.0, width + 2 * max(u, 0.0))
    value, cdf_ratio, pdf_ratio = (float(a[0]) for a in log_h(np.array([u])))
    assert value == pytest.approx(norm.logpdf(u) + np.log(integral), rel=1e-7, abs=1e-9)
    assert pdf_ratio == pytest.approx(1.0 / integral, rel=1e-7)
    expected = np.exp(norm.logcdf(u) - norm.logpdf(u)) / integral
    assert cdf_ratio == pytest.approx(expected, rel=1e-7)


def test_log_h_is_smooth_and_finite_far_out() -> None:
    u = -np.geomspace(1e-2, 1e150, 400)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, cdf_ratio, pdf_ratio = log_h(u)
    assert np.isfinite([value, cdf_ratio, pdf_ratio]).all()
    assert (np.diff(value) < 0.0).all()
    # d log h / du = Phi / h, on both sides of each change of formula.
    for at in (-1.0, -200.0):
        low, high = log_h(np.array([at * (1 + 1e-6)])), log_h(np.array([at * (1 - 1e-6)]))
        slope = float((high[0] - low[0])[0]) / (-2e-6 * at)
        assert slope == pytest.approx(float(high[1][0]), rel=1e-3)


def test_the_value_alone_is_that_with_the_ratios() -> None:
    near = np.random.default_rng(0).uniform(-210.0, 5.0, (3, 40, 2))
    for u in (near, near[:, :0], np.array([-1.0, -200.0, -1e150, 30.0]), np.full(3, 0.5)):
        np.testing.assert_array_equal(_value(u), log_h(u)[0])


@pytest.fixture(params=[(0, False), (3, False), (3, True)], ids=["plain", "pending", "warped"])
def posterior(request):
    n_pending, warped = request.param
    rng = np.random.default_rng(0)
    points = np.column_stack((rng.random((14, 3)), rng.integers(2, size=14)))
    y = np.cos(7 * points[:, 0]) + points[:, 1] ** 2 + points[:, 3]
    pending = np.column_stack((rng.random((n_pending, 3)), np.ones(n_pending)))
    thetas = np.array([[-0.5, 0.0, 0.3, 0.0, -5.0], [-1.0, 0.4, 0.0, 0.5, -3.0]])
    mask = np.array([False, False, False, True])
    exponents = np.array([[0.4, 2.0, 1.0, 1.0], [1.5, 0.5, 3.0, 1.0]])
    return condition(
        points,
        (y - y.mean()) / y.std(),
        pending,
        thetas,
        mask,
        n_fantasies=4,
        rng=rng,
        input_warp=InputWarp(*exponents, ~mask) if warped else None,
    )


def test_expected_improvement_is_an_average_over_models(posterior) -> None:
    new = np.column_stack((np.random.default_rng(1).random((6, 3)), np.zeros(6)))
    mean, variance = posterior.predict(new)
    total = np.zeros(6)
    for s in range(mean.shape[0]):
        for f in range(mean.shape[2]):
            std = np.sqrt(variance[s])
            u = (posterior.best[s, f] - 0.1 - mean[s, :, f]) / std
            total += std * (norm.pdf(u) + u * norm.cdf(u))
    average = total / (mean.shape[0] * mean.shape[2])
    np.testing.assert_allclose(LogEI(posterior, margin=0.1)(new), np.log(average), rtol=1e-8)


def test_negative_mean_is_an_average_over_models(posterior) -> None:
    new = np.column_stack((np.random.default_rng(1).random((6, 3)), np.zeros(6)))
    expected = -posterior.predict(new)[0].mean(axis=(0, 2))
    np.testing.assert_allclose(NegativeMean(posterior)(new), expected, rtol=1e-12)


def test_a_warp_moves_observations_and_points_alike(posterior) -> None:
    """A model with an input warp equals a model without one of the warped points."""
    warp = InputWarp(np.full(4, 0.5), np.full(4, 2.0), np.array([True, True, True, False]))
    points = np.column_stack((np.random.default_rng(3).random((5, 3)), np.zeros(5)))
    rest = {"n_fantasies": 1, "rng": np.random.default_rng(0)}
    y, none, theta = np.arange(5.0), points[:0], np.array([[-0.5, 0.0, 0.3, 0.0, -5.0]])
    bent = condition(points, y, none, theta, posterior.is_category, input_warp=warp, **rest)
    plain = condition(warp(points), y, none, theta, posterior.is_category, **rest)
    new = np.column_stack((np.random.default_rng(4).random((6, 3)), np.zeros(6)))
    for found, expected in zip(bent.predict(new), plain.predict(warp(new)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", [LogEI, NegativeMean])
def test_gradient(posterior, kind) -> None:
    acquisition = kind(posterior)
    new = np.column_stack((np.random.default_rng(2).random((6, 3)), np.zeros(6)))
    value, gradient = acquisition.with_gradient(new)
    np.testing.assert_allclose(value, acquisition(new), rtol=1e-10)
    for d in range(3):
        step = np.zeros(4)
        step[d] = 1e-6
        numeric = (acquisition(new + step) - acquisition(new - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, d], numeric, rtol=1e-4, atol=1e-5)
    assert (gradient[:, 3] == 0.0).all()
