from __future__ import annotations

import numpy as np
import pytest

from spearmint.gp.evidence import A0, B0, JITTER
from spearmint.gp.kernel import matern52, sq_distances
from spearmint.gp.posterior import condition

MASK = np.array([False, False, True])


def some_points(n: int, seed: int):
    rng = np.random.default_rng(seed)
    return np.column_stack((rng.random((n, 2)), rng.integers(3, size=n)))


def kernel(a, b, theta):
    return matern52(sq_distances(a, b, np.exp(-2 * theta[None, :-1]), MASK))[0]


@pytest.fixture
def data():
    points = some_points(12, 0)
    y = np.sin(6 * points[:, 0]) + points[:, 1] + 0.3 * points[:, 2]
    thetas = np.array([[-1.0, -0.5, 0.0, -6.0], [-0.3, 0.2, 0.5, -2.0]])
    return points, (y - y.mean()) / y.std(), thetas


def test_prediction_is_that_of_a_dense_computation(data) -> None:
    points, y, thetas = data
    new = some_points(5, 1)
    rng = np.random.default_rng(0)
    gp = condition(points, y, np.empty((0, 3)), thetas, MASK, n_fantasies=8, rng=rng)
    mean, variance = gp.predict(new)
    assert mean.shape == (2, 5, 1)
    for s, theta in enumerate(thetas):
        k = kernel(points, points, theta) + (np.exp(theta[-1]) + JITTER) * np.eye(12)
        inverse, one = np.linalg.inv(k), np.ones(12)
        level = one @ inverse @ y / (one @ inverse @ one)
        rest = y - level
        scale = (B0 + 0.5 * rest @ inverse @ rest) / (A0 + 0.5 * 11)
        across = kernel(new, points, theta)
        np.testing.assert_allclose(mean[s, :, 0], level + across @ inverse @ rest, rtol=1e-6)
        left = 1.0 - np.einsum("qn,nm,qm->q", across, inverse, across)
        np.testing.assert_allclose(variance[s], scale * left, rtol=1e-5)
        at_data = level + kernel(points, points, theta) @ inverse @ rest
        assert gp.best[s, 0] == pytest.approx(at_data.min(), rel=1e-6)


def test_fantasies_have_the_posterior_of_the_pending_points(data) -> None:
    """Averaged over fantasies, the noisy outcome of a pending point adds no information."""
    points, y, thetas = data
    pending, new = some_points(3, 2), some_points(4, 3)
    none = np.empty((0, 3))
    rng = np.random.default_rng(0)
    before, wide = condition(points, y, none, thetas, MASK, n_fantasies=1, rng=rng).predict(new)
    gp = condition(points, y, pending, thetas, MASK, n_fantasies=2048, rng=rng)
    after, narrow = gp.predict(new)
    assert after.shape == (2, 4, 2048)
    np.testing.assert_allclose(after.mean(axis=2), before[:, :, 0], atol=0.01)
    # Law of total variance.
    np.testing.assert_allclose(after.var(axis=2) + narrow, wide, rtol=0.05, atol=1e-4)
    assert (narrow < wide).all()


def test_points_that_coincide_need_more_jitter_not_luck(data) -> None:
    points, y, _ = data
    twice = np.concatenate((points, points, points))
    theta = np.array([[3.0, 3.0, 3.0, -17.0]])
    rng = np.random.default_rng(0)
    gp = condition(twice, np.tile(y, 3), points, theta, MASK, n_fantasies=2, rng=rng)
    mean, variance = gp.predict(some_points(5, 4))
    assert np.isfinite(mean).all()
    assert (variance > 0.0).all()


def test_thinned_keeps_whole_samples_from_both_ends() -> None:
    rng = np.random.default_rng(0)
    points, mask = rng.random((6, 2)), np.zeros(2, dtype=bool)
    thetas = np.column_stack((rng.normal(-0.5, 0.3, (5, 2)), np.full(5, -6.0)))
    y = points[:, 0] - points[:, 1]
    full = condition(points, y, points[:1] + 0.1, thetas, mask, n_fantasies=2, rng=rng)
    for count, kept in ((2, [0, 4]), (3, [0, 2, 4]), (9, [0, 1, 2, 3, 4])):
        mean, variance = full.thinned(count).predict(points + 0.05)
        np.testing.assert_allclose(mean, full.predict(points + 0.05)[0][kept])
        np.testing.assert_allclose(variance, full.predict(points + 0.05)[1][kept])
        np.testing.assert_array_equal(full.thinned(count).best, full.best[kept])
