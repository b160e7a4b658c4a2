"""A batch of points comes from one fit, and each is conditioned on the points before it."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from spearmint.acquisition import next_point as search
from spearmint.acquisition.batch import Pool
from spearmint.acquisition.factors import LogInverseCost
from spearmint.acquisition.log_ei import LogEI
from spearmint.acquisition.next_point import next_point, next_points
from spearmint.gp.fit import fit
from spearmint.gp.settings import Settings
from spearmint.gp.space import Dimension, Space

SPACE = Space((Dimension(), Dimension(), Dimension(n_choices=3)))


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    points = SPACE.from_cube(rng.random((14, 3)))
    return points, np.sin(5 * points[:, 0]) + points[:, 1] ** 2 + 0.3 * points[:, 2]


def rngs():
    return (np.random.default_rng([7, i]) for i in range(1000))


def test_a_pool_knows_what_the_posterior_knows(data) -> None:
    points, y = data
    rng = np.random.default_rng(0)
    posterior = fit(SPACE, points, y, points[:0], Settings(), rng)
    pool = Pool(posterior, SPACE.from_cube(rng.random((40, 3))), None)
    for point in SPACE.from_cube(rng.random((5, 3))):
        pool.add(point, 8, rng)
    mean, variance = pool.posterior.predict(pool._points)
    np.testing.assert_allclose(pool._mean, mean, atol=1e-8)
    np.testing.assert_allclose(pool.posterior.scale[:, None] * pool._left, variance, atol=1e-8)


def test_refined_points_take_the_place_of_candidates(data) -> None:
    points, y = data
    rng = np.random.default_rng(0)
    posterior = fit(SPACE, points, y, points[:0], Settings(), rng)
    before = SPACE.from_cube(rng.random((300, 3)))
    pool = Pool(posterior, before, LogInverseCost(posterior, unit=0.3))
    for _ in range(3):
        pool.add(points[3], 8, rng)
        first = pool.ranked(SPACE, rng, margin=0.0, refine=True)[0]
    assert 1 <= np.count_nonzero((pool._points != before).any(axis=1)) <= 12
    assert np.abs(pool._points - first).max(axis=1).min() < 1e-12
    mean, variance = pool.posterior.predict(pool._points)
    np.testing.assert_allclose(pool._mean, mean, atol=1e-8)
    np.testing.assert_allclose(pool.posterior.scale[:, None] * pool._left, variance, atol=1e-8)
    np.testing.assert_allclose(pool._log_factor, LogInverseCost(posterior, unit=0.3)(pool._points))
    pool.add(first, 8, rng)  # its columns are those of the new points, too
    np.testing.assert_allclose(pool._mean, pool.posterior.predict(pool._points)[0], atol=1e-8)


def test_few_candidates_are_evaluated_and_the_best_are_among_them(data, monkeypatch) -> None:
    points, y = data
    rng = np.random.default_rng(0)
    posterior = fit(SPACE, points, y, points[:0], Settings(), rng)
    pool, sizes, of = Pool(posterior, SPACE.from_cube(rng.random((1024, 3))), None), [], LogEI.of

    def counted(self, mean, variance):
        sizes.append(mean.shape[1])
        return of(self, mean, variance)

    monkeypatch.setattr(LogEI, "of", counted)
    for margin in (0.0, 0.0, 0.1, 0.0, 0.0):
        pool.add(SPACE.from_cube(rng.random((1, 3)))[0], 8, rng)
        sizes.clear()
        ranked = pool.ranked(SPACE, rng, margin=margin, refine=False)
        used = sum(sizes)
        value = LogEI(pool.posterior, margin=margin)(ranked)
        best = np.sort(value)[::-1]
        assert best[0] - value[0] < 1e-9
        assert np.abs(best[:32] - value[:32]).max() < 0.05
        assert len(ranked) == 1024
    assert used <= 256


def test_a_batch_uses_one_thread_of_blas(data, monkeypatch) -> None:
    limits = []

    class Noting(Pool):
        def __init__(self, *words) -> None:
            limits.append(max(each["num_threads"] for each in threadpool_info()))
            super().__init__(*words)

    monkeypatch.setattr(search, "Pool", Noting)
    with threadpool_limits(2, user_api="blas"):
        batch = next_points(SPACE, *data, data[0][:0], Settings(), rngs())
        assert len(list(islice(batch, 3))) == 3
    assert limits == [1]


@pytest.mark.parametrize("n_pending", [0, 2])
def test_one_more_row_is_a_new_factorisation(data, n_pending: int) -> None:
    points, y = data
    rng = np.random.default_rng(0)
    pending, added = np.split(SPACE.from_cube(rng.random((n_pending + 2, 3))), [n_pending])
    settings = Settings(mcmc_iters=3)
    larger = fit(SPACE, points, y, pending, settings, np.random.default_rng(5))
    for point in added:
        larger = larger.extended(point, rng.standard_normal((3, 8)))
    both = np.concatenate((pending, added))
    anew = fit(SPACE, points, y, both, settings, np.random.default_rng(5))
    np.testing.assert_allclose(larger.inverse_factor, anew.inverse_factor, atol=1e-7)
    probe = SPACE.from_cube(rng.random((9, 3)))
    np.testing.assert_allclose(larger.predict(probe)[1], anew.predict(probe)[1], atol=1e-9)


def test_the_first_point_is_that_of_a_single_proposal(data) -> None:
    points, y = data
    batch = next_points(SPACE, points, y, points[:2], Settings(), rngs())
    alone = next_point(SPACE, points, y, points[:2], Settings(), next(rngs()))
    np.testing.assert_array_equal(next(batch), alone)


@pytest.mark.parametrize("settings", [Settings(), Settings(noiseless=True), Settings(grid_size=64)])
def test_a_batch_fits_once_and_its_points_are_apart(data, settings, monkeypatch) -> None:
    fits = []
    monkeypatch.setattr(search, "fit", lambda *args: fits.append(1) or fit(*args))
    found = np.array(list(islice(next_points(SPACE, *data, data[0][:0], settings, rngs()), 12)))
    assert len(fits) == 1
    np.testing.assert_array_equal(SPACE.snap(found), found)
    gaps = np.abs(found[:, None] - found).max(axis=2) + np.eye(len(found))
    assert gaps.min() > 1e-6
    # Twelve copies of one point, each a hair away, would be no batch.
    assert np.ptp(found[:, :2], axis=0).max() > 0.05


def test_a_small_space_is_used_up_without_repeats() -> None:
    space = Space((Dimension(n_choices=4), Dimension(low=0, high=2, step=1)))
    points = space.from_cube(np.array([[0.1, 0.1], [0.6, 0.9]]))
    batch = next_points(space, points, np.array([0.0, 1.0]), points[:0], Settings(), rngs())
    found = np.array(list(islice(batch, 10)))
    assert len({tuple(point) for point in np.concatenate((points, found))}) == 12
