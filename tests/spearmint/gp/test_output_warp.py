from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import norm

from spearmint.gp.output_warp import POWERS, box_cox, log_weight, standardise, warps

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=30))
def test_any_finite_values_become_standard(values: list[float]) -> None:
    for view in warps(np.array(values)):
        # All values are equal, or nearly so: the result is zeros.
        assert not view.values.any() or view.values.std() == pytest.approx(1.0)
        assert np.isfinite(view.values).all()
        assert np.isfinite(view.log_weight)


@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1e200])
def test_a_likelihood_may_be_tiny_or_huge(scale: float) -> None:
    y = np.random.default_rng(0).random(20)
    np.testing.assert_allclose(standardise(scale * y), standardise(y), rtol=1e-10)


@given(st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=30, unique=True))
def test_a_warp_keeps_the_order(values: list[float]) -> None:
    y = np.array(values)
    for view in warps(y):
        assert (np.diff(view.values[np.argsort(y)]) >= 0.0).all()


@given(st.floats(1e-3, 1e3), st.floats(-100.0, 100.0))
def test_shift_and_scale_of_the_objective_do_not_matter(scale: float, shift: float) -> None:
    y = np.random.default_rng(0).exponential(size=20)
    for moved, plain in zip(warps(scale * y + shift), warps(y), strict=True):
        np.testing.assert_allclose(moved.values, plain.values, atol=1e-6)
        assert moved.log_weight == pytest.approx(plain.log_weight, abs=1e-4)


def test_box_cox_of_known_powers() -> None:
    u = np.array([0.0, 1.0, 3.0])
    np.testing.assert_allclose(box_cox(np.log1p(u), 1.0), u)
    np.testing.assert_allclose(box_cox(np.log1p(u), 0.5), 2.0 * (np.sqrt(1.0 + u) - 1.0))
    np.testing.assert_allclose(box_cox(np.log1p(u), 0.0), np.log1p(u))
    np.testing.assert_allclose(box_cox(np.log1p(u), -0.5), 2.0 - 2.0 / np.sqrt(1.0 + u))


@pytest.mark.parametrize("power", POWERS)
def test_log_weight_is_the_normal_likelihood_of_the_untransformed_values(power: float) -> None:
    u = np.random.default_rng(1).exponential(size=15)
    log_u = np.log1p(u)
    t = box_cox(log_u, power)
    slopes = [approx_fprime([v], lambda w: box_cox(np.log1p(w), power)[0])[0] for v in u]
    density = norm(t.mean(), t.std()).logpdf(t).sum() + np.log(slopes).sum()
    constant = -0.5 * len(u) * (1.0 + np.log(2.0 * np.pi))
    expected = density - constant + norm(1.0, 0.5).logpdf(power) - norm(1.0, 0.5).logpdf(1.0)
    assert log_weight(log_u, power) == pytest.approx(expected, abs=1e-4)


def likeliest(y):
    return max(warps(y), key=lambda view: view.log_weight).values


def test_values_with_a_tall_wall_are_warped_and_even_ones_are_not() -> None:
    even = np.linspace(0.0, 1.0, 30)
    np.testing.assert_allclose(likeliest(even), standardise(even))
    steep = np.exp(np.linspace(0.0, 9.0, 30))
    assert likeliest(steep).max() < 0.6 * standardise(steep).max()


@pytest.mark.parametrize("failed", [1e3, 1e8, 1e10, 1e30, 1.7e308])
@pytest.mark.parametrize("n_failed", [1, 8, 15])
def test_values_that_stand_for_failures_leave_the_others_apart(failed, n_failed: int) -> None:
    values = np.random.default_rng(2).random(20)
    found = likeliest(np.concatenate((values, np.full(n_failed, failed))))
    assert np.ptp(found[:20]) > 0.1
    assert found[:20].max() < found[20:].min()


def test_rounding_errors_are_no_spread() -> None:
    (view,) = warps(np.array([0.3, 0.3, 0.1 + 0.2, 0.1 + 0.2, 0.1 + 0.2, 0.5]))
    assert view.log_weight == 0.0


def test_too_little_to_warp() -> None:
    for y in ([1.0, 2.0, 5.0], [1.0, 1.0, 1.0, 9.0], [3.0] * 10):
        (view,) = warps(np.array(y))
        np.testing.assert_array_equal(view.values, standardise(np.array(y)))
        assert view.log_weight == 0.0
