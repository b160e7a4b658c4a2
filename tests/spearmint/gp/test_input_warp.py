from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from spearmint.acquisition.maximize import spread
from spearmint.gp import input_warp
from spearmint.gp.evidence import LogPosterior, default_prior
from spearmint.gp.hypers import posterior_mode
from spearmint.gp.input_warp import InputWarp, WarpPosterior, fit_input_warp
from spearmint.gp.kernel import sq_differences
from spearmint.gp.numerics import Array
from spearmint.gp.packed_triangles import pack
from spearmint.gp.space import Dimension, Space

NONE = np.zeros(2, dtype=bool)
MASK = np.array([False, True, False])
CURVES = [(1.0, 1.0), (0.3, 1.0), (1.0, 4.0), (0.2, 0.3), (5.0, 8.0)]


def curve(a: float, b: float) -> InputWarp:
    return InputWarp(np.array([a]), np.array([b]), np.array([True]))


@pytest.mark.parametrize(("a", "b"), CURVES)
def test_a_curve_rises_from_0_to_1_and_back(a: float, b: float) -> None:
    x = np.linspace(0.0, 1.0, 101)[:, None]
    warp = curve(a, b)
    w = warp(x)
    assert w[0] == 0.0
    assert w[-1] == 1.0
    assert (np.diff(w[:, 0]) > 0.0).all()
    inner = w < 0.999
    np.testing.assert_allclose(warp.inverse(w)[inner], x[inner], atol=1e-6)
    step = 1e-7
    numeric = (warp(x[5:-5] + step) - warp(x[5:-5] - step)) / (2.0 * step)
    np.testing.assert_allclose(warp.slope(x[5:-5]), numeric, rtol=1e-4, atol=1e-6)


def test_equal_exponents_of_1_are_no_warp() -> None:
    x = np.random.default_rng(0).random((20, 1))
    np.testing.assert_allclose(curve(1.0, 1.0)(x), x, atol=1e-15)
    np.testing.assert_allclose(curve(1.0, 1.0).slope(x), 1.0)


@pytest.mark.parametrize(("a", "b"), CURVES)
def test_derivatives_are_finite_at_the_ends(a: float, b: float) -> None:
    ends = np.array([[0.0], [1.0]])
    warp = curve(a, b)
    for found in (warp.slope(ends), *warp.by_exponents(ends)):
        assert np.isfinite(found).all()


def test_categories_stay() -> None:
    warp = InputWarp(np.array([2.0, 1.0, 0.5]), np.array([3.0, 1.0, 1.0]), ~MASK)
    points = np.array([[0.3, 4.0, 0.9], [0.1, 0.0, 0.2]])
    np.testing.assert_array_equal(warp(points)[:, 1], points[:, 1])
    np.testing.assert_array_equal(warp.inverse(points)[:, 1], points[:, 1])
    np.testing.assert_array_equal(warp.slope(points)[:, 1], 1.0)
    assert (warp(points)[:, 0] != points[:, 0]).all()


@pytest.mark.parametrize("noiseless", [False, True])
def test_gradient_of_the_joint_log_posterior(noiseless: bool) -> None:
    rng = np.random.default_rng(1)
    points = rng.random((15, 3))
    points[:, 1] = rng.integers(3, size=15)
    points[0, 0], points[1, 2] = 0.0, 1.0
    y = np.sin(5.0 * points).sum(axis=1)
    prior = default_prior(3, noiseless=noiseless)
    density = WarpPosterior(points, (y - y.mean()) / y.std(), MASK, prior)
    phi = np.concatenate((prior.mean + 0.3, [0.4, -0.3, -0.2, 0.5]))
    numeric = approx_fprime(phi, lambda p: density.with_gradient(p)[0], 1e-6)
    np.testing.assert_allclose(density.with_gradient(phi)[1], numeric, rtol=1e-3, atol=1e-3)


def test_gradient_where_many_points_are_at_the_bounds() -> None:
    """At the edges, small exponents have the steepest slopes."""
    rng = np.random.default_rng(6)
    points = rng.random((16, 2))
    points[:4, 0], points[4:8, 1], points[8:12] = 0.0, 1.0, rng.integers(2, size=(4, 2))
    y = np.sin(5.0 * points).sum(axis=1)
    prior = default_prior(2, noiseless=True)
    density = WarpPosterior(points, (y - y.mean()) / y.std(), NONE, prior)
    phi = np.concatenate((prior.mean, [-2.3, -1.6, -1.2, -2.3]))
    ends = [[density.with_gradient(phi + s * e)[0] for s in (-1e-5, 1e-5)] for e in np.eye(7)]
    numeric = np.diff(ends, axis=1)[:, 0] / 2e-5
    np.testing.assert_allclose(density.with_gradient(phi)[1], numeric, rtol=1e-4, atol=1e-4)


def test_no_warp_at_all_is_the_posterior_of_the_length_scales() -> None:
    """Exponents of 1 do not change the points or the log posterior."""
    points = np.random.default_rng(2).random((12, 2))
    y = points[:, 0] - points[:, 0].mean()
    prior = default_prior(2, noiseless=False)
    plain = LogPosterior(pack(sq_differences(points, points, NONE)), y, prior)
    value, gradient = WarpPosterior(points, y, NONE, prior).with_gradient(
        np.append(prior.mean, np.zeros(4))
    )
    expected, slope = plain.with_gradient(prior.mean)
    assert value == pytest.approx(expected)
    np.testing.assert_allclose(gradient[:3], slope, rtol=1e-9)


def test_a_loss_of_the_logarithm_bends_its_coordinate_only() -> None:
    """The values are those of a learning rate from 1e-4 to 1 with an undeclared log scale."""
    rng = np.random.default_rng(3)
    points = rng.random((40, 2))
    y = (np.log(1e-4 + points[:, 0]) + 3.0) ** 2 + np.sin(3.0 * points[:, 1])
    y = (y - y.mean()) / y.std()
    prior = default_prior(2, noiseless=True)
    _, warp = fit_input_warp(points, y, NONE, prior, prior.mean)
    assert warp is not None
    slopes = warp.slope(np.array([[0.02, 0.1], [0.9, 0.9]]))
    assert slopes[0, 0] > 5.0 * slopes[1, 0]
    assert 0.3 < slopes[0, 1] / slopes[1, 1] < 3.0


@pytest.mark.parametrize("n", [3, 12, 40])
@pytest.mark.parametrize("kind", ["constant", "noise", "wave"])
def test_no_warp_without_evidence_for_it(n: int, kind: str) -> None:
    rng = np.random.default_rng(4)
    points = rng.random((n, 2))
    waves = np.sin(6.0 * points).sum(axis=1)
    y = {"constant": np.zeros(n), "noise": rng.standard_normal(n), "wave": waves}[kind]
    prior = default_prior(2, noiseless=False)
    sq = pack(sq_differences(points, points, NONE))
    mode = posterior_mode(LogPosterior(sq, y - y.mean(), prior), prior.mean)
    theta, warp = fit_input_warp(points, y - y.mean(), NONE, prior, mode)
    assert warp is None
    np.testing.assert_array_equal(theta, mode)


def test_the_search_for_a_warp_stops_when_it_gains_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is the same as after the full search: no warp, and the mode without one."""
    count, with_gradient = 0, WarpPosterior.with_gradient

    def counted(density: WarpPosterior, phi: Array) -> tuple[float, Array]:
        nonlocal count
        count += 1
        return with_gradient(density, phi)

    monkeypatch.setattr(WarpPosterior, "with_gradient", counted)
    points = np.random.default_rng(7).random((40, 2))
    y = np.sin(6.0 * points).sum(axis=1)
    prior = default_prior(2, noiseless=False)
    mode = posterior_mode(
        LogPosterior(pack(sq_differences(points, points, NONE)), y, prior), prior.mean
    )
    assert fit_input_warp(points, y, NONE, prior, mode)[1] is None
    short, count = count, 0
    monkeypatch.setattr(input_warp, "_FIRST_EVALUATIONS", 59)
    assert fit_input_warp(points, y, NONE, prior, mode)[1] is None
    assert short < 0.8 * count


def test_every_other_point_is_even_in_warped_coordinates() -> None:
    space = Space((Dimension(), Dimension(n_choices=3), Dimension(low=1.0, high=9.0, step=1.0)))
    warp = InputWarp(np.array([0.2, 1.0, 1.0]), np.ones(3), np.array([True, False, True]))
    cube = np.random.default_rng(5).random((64, 3))
    points = spread(space, cube, warp)
    np.testing.assert_array_equal(points[1::2], space.from_cube(cube)[1::2])
    np.testing.assert_allclose(warp(points)[::2, 0], cube[::2, 0], atol=1e-9)
    np.testing.assert_allclose(points, space.snap(points), atol=1e-12)
    np.testing.assert_array_equal(spread(space, cube, None), space.from_cube(cube))
