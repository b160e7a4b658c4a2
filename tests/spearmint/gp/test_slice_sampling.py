from __future__ import annotations

import numpy as np
from scipy.stats import kstest

from spearmint.gp.slice_sampling import slice_sample


def test_a_correlated_normal_is_sampled_in_mean_and_covariance() -> None:
    covariance = np.array([[2.0, 0.9], [0.9, 0.5]])
    precision = np.linalg.inv(covariance)
    mean = np.array([1.0, -3.0])

    def log_density(x):
        return float(-0.5 * (x - mean) @ precision @ (x - mean))

    axes = np.linalg.cholesky(covariance).T
    rng = np.random.default_rng(0)
    draws = slice_sample(log_density, mean, axes, rng, n_samples=6000, burnin=10)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(np.cov(draws.T), covariance, rtol=0.1, atol=0.05)
    white = (draws - mean) @ np.linalg.inv(axes)
    assert kstest(white[::5, 0], "norm").pvalue > 0.001


def test_a_skewed_density_with_a_wall() -> None:
    def log_density(x):
        return float(-x[0]) if x[0] >= 0.0 else -np.inf

    rng = np.random.default_rng(1)
    draws = slice_sample(log_density, np.ones(1), np.eye(1), rng, n_samples=5000)
    assert draws.min() >= 0.0
    assert kstest(draws[::5, 0], "expon").pvalue > 0.001


def test_directions_far_too_short_or_long_still_sample_the_same() -> None:
    def log_density(x):
        return float(-0.5 * x[0] ** 2)

    for length in (0.2, 20.0):
        rng = np.random.default_rng(2)
        draws = slice_sample(log_density, np.zeros(1), np.eye(1) * length, rng, n_samples=8000)
        assert abs(draws.std() - 1.0) < 0.08


def test_a_sweep_may_use_some_of_the_directions() -> None:
    def log_density(x):
        return float(-0.5 * x @ x)

    rng = np.random.default_rng(3)
    draws = slice_sample(log_density, np.zeros(5), np.eye(5), rng, n_samples=50, per_sweep=2)
    assert (np.diff(draws, axis=0) != 0.0).sum(axis=1).max() <= 2


def test_the_seed_decides() -> None:
    def run(seed: int):
        rng = np.random.default_rng(seed)
        return slice_sample(lambda x: -float(x @ x), np.zeros(2), np.eye(2), rng, n_samples=3)

    np.testing.assert_array_equal(run(0), run(0))
    assert not np.array_equal(run(0), run(1))
