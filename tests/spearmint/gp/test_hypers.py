from __future__ import annotations

import numpy as np

from spearmint.gp import hypers
from spearmint.gp.evidence import LogPosterior, default_prior
from spearmint.gp.kernel import sq_differences
from spearmint.gp.numerics import Array
from spearmint.gp.packed_triangles import pack
from spearmint.gp.slice_sampling import slice_sample


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


def test_elliptical_updates_sample_the_same() -> None:
    """The reference chain moves along the axes only."""
    density = some_density(2, 100)
    mode = hypers.posterior_mode(density, density.prior.mean)
    chain = hypers.sample(density, mode, np.random.default_rng(0), n_samples=500, burnin=10)
    axes = np.diag(density.prior.std)
    reference = slice_sample(density, mode, axes, np.random.default_rng(1), n_samples=500)
    spread = reference.std(axis=0)
    assert (np.abs(chain.mean(axis=0) - reference.mean(axis=0)) < 0.3 * spread).all()
    np.testing.assert_allclose(chain.std(axis=0), spread, rtol=0.25)


class Counted:
    """A density that counts its evaluations, except those outside the prior, which are cheap."""

    def __init__(self, density: LogPosterior) -> None:
        self._density, self.prior, self.count = density, density.prior, 0
        self.n_observations = density.n_observations

    def __call__(self, theta: Array) -> float:
        value = self._density(theta)
        self.count += value > -np.inf
        return value

    def with_gradient(self, theta: Array) -> tuple[float, Array]:
        self.count += 1
        return self._density.with_gradient(theta)


def test_a_chain_has_few_evaluations() -> None:
    """With updates along all axes it had 400. The mode is at four bounds."""
    density = some_density(6, 100)
    mode = hypers.posterior_mode(density, density.prior.mean)
    counted = Counted(density)
    hypers.sample(counted, mode, np.random.default_rng(0), n_samples=10, burnin=6)
    assert counted.count < 250


def test_a_search_that_is_not_worthwhile_stops_early() -> None:
    density = Counted(some_density(6, 40))
    hypers.posterior_mode(density, density.prior.mean)
    full, density.count = density.count, 0
    hypers.posterior_mode(density, density.prior.mean, worthwhile=lambda count, _: count < 4)
    assert 4 <= density.count < full
