from __future__ import annotations

import numpy as np
from scipy.special import gamma, kv

from spearmint.gp import kernel


def test_matern52_is_the_general_matern_at_five_halves() -> None:
    r = np.array([0.01, 0.3, 1.0, 4.0])
    z = np.sqrt(5.0) * r
    general = 2.0 ** (1.0 - 2.5) / gamma(2.5) * z**2.5 * kv(2.5, z)
    np.testing.assert_allclose(kernel.matern52(r * r), general, rtol=1e-10)
    assert kernel.matern52(np.array([0.0])) == 1.0


def test_slope_is_the_derivative_by_the_squared_distance() -> None:
    r2 = np.array([1e-3, 0.2, 1.0, 9.0])
    step = 1e-6
    value, slope = kernel.matern52_slope(r2)
    numeric = (kernel.matern52(r2 + step) - kernel.matern52(r2 - step)) / (2 * step)
    np.testing.assert_allclose(value, kernel.matern52(r2))
    np.testing.assert_allclose(slope, numeric, rtol=1e-6)
    assert kernel.matern52_slope(np.zeros(1))[1] == -5.0 / 6.0


def test_distances_scale_numbers_and_compare_categories() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack((rng.random((9, 2)), rng.integers(3, size=9)))
    others = np.column_stack((rng.random((7, 2)), rng.integers(3, size=7)))
    weights = rng.random((4, 3))
    mask = np.array([False, False, True])
    expected = np.empty((4, 9, 7))
    for s, w in enumerate(weights):
        for i, a in enumerate(points):
            for j, b in enumerate(others):
                delta = np.append((a - b)[:2] ** 2, float(a[2] != b[2]))
                expected[s, i, j] = w @ delta
    np.testing.assert_allclose(kernel.sq_distances(points, others, weights, mask), expected)


def test_distances_of_near_points_keep_their_digits() -> None:
    points = np.full((2, 3), 0.9) + np.array([[0.0], [1e-5]])
    weights = np.array([[1e4, 1.0, 30.0]])
    none = np.zeros(3, dtype=bool)
    found = kernel.sq_distances(points, points, weights, none)[0]
    np.testing.assert_allclose(found[0, 1], weights.sum() * 1e-10, rtol=1e-5)
    assert (found >= 0.0).all()
