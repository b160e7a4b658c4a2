"""Weights of earlier searches, and a model with their trend."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from spearmint.acquisition.log_ei import LogEI, NegativeMean
from spearmint.acquisition.next_point import next_points
from spearmint.gp.fit import fit
from spearmint.gp.numerics import Array
from spearmint.gp.settings import Settings
from spearmint.gp.space import Dimension, Space
from spearmint.transfer import Ensemble, Task
from spearmint.transfer.ensemble import EarlierModel
from spearmint.transfer.weights import weights

SPACE = Space((Dimension(), Dimension(), Dimension(n_choices=2)))
SETTINGS = Settings(mcmc_iters=3, burnin=2)


def bowl(points: Array) -> Array:
    return np.asarray(((points[:, :2] - [0.3, 0.7]) ** 2).sum(axis=1) + 0.1 * points[:, 2])


def some(n: int, seed: int) -> Array:
    return SPACE.from_cube(np.random.default_rng(seed).random((n, 3)))


def task(y: Array, points: Array, shared: tuple[int, ...] = (0, 1, 2)) -> Task:
    is_feasible: NDArray[np.bool_] = np.ones(len(y), dtype=bool)
    return Task(points, y, is_feasible, np.array(shared), "old")


def ensemble(*tasks: Task) -> Ensemble:
    return Ensemble([EarlierModel(SPACE, each) for each in tasks])


@pytest.fixture(scope="module")
def earlier() -> Array:
    return some(40, 1)


def test_a_search_that_ranks_right_gets_the_weight_of_one_that_does_not() -> None:
    y = np.arange(12.0)
    rng = np.random.default_rng(0)
    right, inverted, constant = 5.0 * y + 3.0, -y, np.zeros(12)
    found = weights(y, np.stack((inverted, right, constant)), rng.permutation(y), rng)
    assert found[1] > 0.9
    assert found[0] == found[2] == 0.0


def test_noise_has_no_weight_although_this_search_predicts_worse_than_chance() -> None:
    """With 6 trials. The sum over 100 draws would be about 50 without the test against chance."""
    rng = np.random.default_rng(0)
    y = np.arange(6.0)
    total = sum(weights(y, rng.standard_normal((1, 6)), -y, rng).sum() for _ in range(100))
    assert total < 15.0


def test_a_search_that_predicts_itself_needs_no_other() -> None:
    y = np.arange(12.0)
    almost = y[[1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10]]
    assert weights(y, almost[None], y, np.random.default_rng(0)).sum() < 0.1


def test_three_trials_or_equal_values_give_no_weight() -> None:
    rng = np.random.default_rng(0)
    assert not weights(np.arange(3.0), np.arange(3.0)[None], np.zeros(3), rng).any()
    assert not weights(np.zeros(9), np.arange(9.0)[None], np.zeros(9), rng).any()


def test_a_misleading_search_changes_nothing(earlier: Array) -> None:
    points, none = some(10, 2), SPACE.centre[None][:0]
    y, wrong = bowl(points), ensemble(task(-bowl(earlier), earlier))
    plain, learned = (
        list(
            next_points(
                SPACE, points, y, none, SETTINGS, map(np.random.default_rng, (3, 4)), model=model
            )
        )
        for model in (fit, wrong.fit)
    )
    np.testing.assert_array_equal(plain, learned)


def test_the_model_interpolates_and_knows_the_rest_from_the_earlier_search(earlier: Array) -> None:
    points, none = some(6, 2), SPACE.centre[None][:0]
    y = 100.0 * bowl(points) + 7.0
    model = ensemble(task(bowl(earlier) * 0.01, earlier))
    settings = Settings(mcmc_iters=3, burnin=2, noiseless=True, warp=False)
    posterior = model.fit(SPACE, points, y, none, settings, np.random.default_rng(3))
    assert posterior.trend is not None
    z = (y - y.mean()) / y.std()
    np.testing.assert_allclose(posterior.predict(points)[0].mean(axis=(0, 2)), z, atol=0.1)
    np.testing.assert_allclose(posterior.best.min(), z.min(), atol=0.1)
    others = some(50, 9)
    truth = (100.0 * bowl(others) + 7.0 - y.mean()) / y.std()
    plain = fit(SPACE, points, y, none, settings, np.random.default_rng(3))
    errors = [
        np.abs(p.predict(others)[0].mean(axis=(0, 2)) - truth).mean() for p in (posterior, plain)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_gradients_include_the_trend(earlier: Array) -> None:
    points, pending = some(8, 2), some(2, 5)
    tasks = [task(bowl(earlier), earlier), task(bowl(earlier), earlier + 0.05, (1,))]
    posterior = ensemble(*tasks).fit(
        SPACE, points, bowl(points) ** 0.5, pending, SETTINGS, np.random.default_rng(3)
    )
    assert posterior.trend is not None
    at, step = some(5, 7), 1e-6
    for function in (LogEI(posterior), NegativeMean(posterior)):
        value, gradient = function.with_gradient(at)
        np.testing.assert_allclose(value, function(at), rtol=1e-9)
        for d in (0, 1):
            moved = np.eye(3)[d] * step
            slope = (function(at + moved) - function(at - moved)) / (2 * step)
            np.testing.assert_allclose(gradient[:, d], slope, rtol=1e-3, atol=1e-4)
        assert not gradient[:, 2].any()


def test_one_more_pending_trial_keeps_the_trend(earlier: Array) -> None:
    points, none = some(8, 2), SPACE.centre[None][:0]
    posterior = ensemble(task(bowl(earlier), earlier)).fit(
        SPACE, points, bowl(points), none, SETTINGS, np.random.default_rng(3)
    )
    at = some(3, 8)
    larger = posterior.extended(some(1, 11)[0], np.zeros((len(posterior.mean), 1)))
    np.testing.assert_allclose(larger.predict(at)[0], posterior.predict(at)[0], atol=1e-8)
