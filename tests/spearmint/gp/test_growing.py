"""A growing posterior is the one of a new factorisation, whatever room it has."""

from __future__ import annotations

import numpy as np
import pytest

from spearmint.acquisition.log_ei import LogEI
from spearmint.gp.growing import Growing
from spearmint.gp.posterior import Posterior, condition
from spearmint.gp.triangles import LARGE

THETAS = np.array([[-0.5, 0.0, 1.0, -6.0], [0.0, -1.0, 2.0, -4.0]])
MASK = np.array([False, False, True])


def some_points(n: int, seed: int):
    points = np.random.default_rng(seed).random((n, 3))
    points[:, 2] = points[:, 2] > 0.5
    return points


def posterior_of(points, thetas=THETAS) -> Posterior:
    y = np.sin(5 * points[:, 0]) + points[:, 1] ** 2 + 0.3 * points[:, 2]
    none = points[:0]
    rng = np.random.default_rng(0)
    return condition(points, y, none, thetas, MASK, n_fantasies=1, rng=rng)


@pytest.mark.parametrize(("n", "added"), [(5, 40), (LARGE, 53)])
def test_a_growing_posterior_is_that_with_new_arrays(n: int, added: int) -> None:
    grown = posterior_of(some_points(n, 1))
    growing = Growing(grown)
    rng = np.random.default_rng(2)
    for point in some_points(added, 3):
        normals = rng.standard_normal((2, 8))
        l_white, rest = growing.add(point, normals)
        _, half, left = grown.whitened(point[None])
        np.testing.assert_allclose(l_white, half[:, 0], atol=1e-9)
        np.testing.assert_allclose(rest**2, left[:, 0] + grown.noise, rtol=1e-6)
        grown = grown.extended(point, normals)
    assert growing.size == n + added
    new = some_points(6, 4)
    mean, variance = grown.predict(new)
    found = growing.posterior
    np.testing.assert_allclose(found.predict(new)[0], mean, atol=1e-7)
    np.testing.assert_allclose(found.predict(new)[1], variance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.best, grown.best, atol=1e-7)
    # Few rows of a large posterior are multiplied by the inverse of its covariance.
    assert (found.inverse is None) == (n < LARGE)
    value, gradient = LogEI(grown).with_gradient(new[:3])
    by_inverse = LogEI(found).with_gradient(new[:3])
    np.testing.assert_allclose(by_inverse[0], value, rtol=1e-5)
    np.testing.assert_allclose(by_inverse[1], gradient, rtol=1e-4, atol=1e-6)


def test_the_first_posterior_does_not_change() -> None:
    first = posterior_of(some_points(5, 1))
    before = first.predict(some_points(4, 2))
    growing = Growing(first)
    growing.add(some_points(1, 3)[0], np.ones((2, 4)))
    for found, known in zip(first.predict(some_points(4, 2)), before, strict=True):
        np.testing.assert_array_equal(found, known)


def test_some_samples_of_a_large_posterior_keep_their_inverse() -> None:
    growing = Growing(posterior_of(some_points(LARGE, 1)))
    one, new = growing.posterior.thinned(1), some_points(2, 5)
    assert one.inverse is not None
    np.testing.assert_allclose(
        one.solved(one.correlation(new))[0], growing.posterior.solved(
            growing.posterior.correlation(new)
        )[0][:1],
    )  # fmt: skip


def with_noise(log_noise: float):
    return np.column_stack((THETAS[:, :3], np.full(2, log_noise)))


def test_a_large_posterior_without_noise_has_no_inverse() -> None:
    growing = Growing(posterior_of(some_points(LARGE, 1), with_noise(-17.0)))
    assert growing.posterior.inverse is None


def test_points_that_are_almost_known_end_the_inverse_and_change_nothing_else() -> None:
    growing = Growing(grown := posterior_of(some_points(LARGE, 1), with_noise(-9.3)))
    assert growing.posterior.inverse is not None
    rng = np.random.default_rng(2)
    near = some_points(1, 3)[0] + rng.normal(size=(60, 1)) * np.array([1e-4, 1e-4, 0.0])
    for point in near:
        normals = rng.standard_normal((2, 8))
        growing.add(point, normals)
        grown = grown.extended(point, normals)
    found = growing.posterior
    assert found.inverse is None
    new = np.concatenate((some_points(2, 4), near[:2] + np.array([3e-3, 0, 0])))
    np.testing.assert_allclose(found.predict(new)[0], grown.predict(new)[0], atol=1e-6)
    np.testing.assert_allclose(
        LogEI(found).with_gradient(new)[0], LogEI(grown).with_gradient(new)[0], rtol=1e-4
    )
