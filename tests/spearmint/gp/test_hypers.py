from __future__ import annotations

import numpy as np

from spearmint.gp import hypers
from spearmint.gp.evidence import LogPosterior, default_prior
from spearmint.gp.kernel import sq_differences
from spearmint.gp.packed_triangles import pack


def some_density(n_dimensions: int, n: int = 12) -> LogPosterior:
    points = np.random.default_rng(0).random((n, n_dimensions))
    y = np.sin(9.0 * points[:, 0]) + 0.3 * points[:, 1]
    sq = pack(sq_differences(points, points, np.zeros(n_dimensions, dtype=bool)))
    prior = default_prior(n_dimensions, noiseless=True)
    return LogPosterior(sq, (y - y.mean()) / y.std(), prior)


def test_the_mode_is_higher_than_all_around_it() -> None:
    density = some_density(3)
    mode = hypers.posterior_mode(density, density.prior.mean)
    steps = 0.05 * np.vstack((np.eye(4), -np.eye(4)))
    inside = np.clip(mode + steps, density.prior.lower, density.prior.upper)
    assert all(density(theta) <= density(mode) + 1e-4 for theta in inside)


def test_a_chain_from_the_mode_is_that_of_a_long_one() -> None:
    density, rng = some_density(2), np.random.default_rng(1)
    mode = hypers.posterior_mode(density, density.prior.mean)
    long = hypers.sample(density, mode, rng, n_samples=500, burnin=50)
    ends = [hypers.sample(density, mode, rng, n_samples=1, burnin=6)[0] for _ in range(40)]
    error = long.std(axis=0) / np.sqrt(len(ends))
    assert (np.abs(np.mean(ends, axis=0) - long.mean(axis=0)) < 4.0 * error).all()
    assert (np.abs(density.prior.mean - long.mean(axis=0)) > 6.0 * error).any()
