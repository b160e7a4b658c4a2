"""The knowledge gradient of one more value at a point, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from spearmint.acquisition.replicates import Replicates, _gain, knowledge_gradients
from spearmint.gp.fit import fit
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Dimension, Space

POINTS = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])
SPACE = Space((Dimension(low=0.0, high=1.0),))


def posterior_of(noise: float) -> Posterior:
    rng = np.random.default_rng(0)
    at = np.repeat(POINTS, 4, axis=0)
    y = 4.0 * (at[:, 0] - 0.45) ** 2 + noise * rng.standard_normal(len(at))
    return fit(SPACE, at, y, at[:0], Settings(mcmc_iters=3, burnin=2), rng)


def lowest(gp: Posterior, n: int) -> list[int]:
    """Return the indices of the ``n`` points with the lowest means."""
    means = gp.predict(POINTS)[0].mean(axis=(0, 2))
    return [int(i) for i in np.argsort(means)[:n]]


@pytest.mark.parametrize(
    ("heights", "slopes"),
    [
        ([0.0, 0.1, 0.3], [0.5, -0.2, 1.5]),
        ([0.0, 0.0], [1.0, 1.0]),
        ([1.0], [3.0]),
        ([0.0, 5.0, -1.0, 2.0], [0.3, -9.0, 0.3, 0.0]),
        ([0.2, 0.1, 0.1, 0.1], [0.0, 0.0, 1e-14, 2.0]),
        ([0.9, -0.3, -0.2], [1e-14, 0.0, 0.5]),  # the lower of two lines has the lower slope
    ],
)
def test_the_gain_is_the_drop_of_the_expected_minimum(
    heights: list[float], slopes: list[float]
) -> None:
    z = (np.arange(400_000) + 0.5) / 400_000 * 16.0 - 8.0
    weight = np.exp(-0.5 * z * z)
    lowest = np.min(np.array(heights)[:, None] + np.array(slopes)[:, None] * z, axis=0)
    expected = min(heights) - lowest @ weight / weight.sum()
    assert _gain(np.array(heights), np.array(slopes)) == pytest.approx(expected, abs=1e-6)


def test_covariances_have_the_predicted_variances() -> None:
    gp = posterior_of(0.3)
    covariance = gp.covariance(POINTS)
    assert np.allclose(np.diagonal(covariance, axis1=1, axis2=2), gp.predict(POINTS)[1])
    assert np.allclose(covariance, covariance.transpose(0, 2, 1))


def test_a_value_where_the_choice_is_open_gains_most() -> None:
    gp = posterior_of(0.5)
    gains = knowledge_gradients(gp, POINTS, POINTS[:0])
    assert gains.min() >= 0.0
    assert set(np.argsort(-gains)[:2]) == set(lowest(gp, 2)), "the two that are nearly equal"
    assert gains[[0, 4]].max() < 1e-3 * gains.max()


def test_a_new_point_counts_from_the_lowest_mean_that_is_known() -> None:
    gp = posterior_of(0.5)
    best, second = POINTS[lowest(gp, 2)]
    known = np.stack([p for p in POINTS if p not in (best, second)])
    gains = knowledge_gradients(gp, known, np.stack([best]))
    drop = gp.predict(known)[0].mean(axis=(0, 2)).min() - gp.predict(best[None])[0].mean()
    assert gains[-1] > 0.999 * drop > 0.0


def test_without_noise_nothing_is_repeated() -> None:
    marked: list[bool] = []
    replicates = Replicates(POINTS, lambda: marked.append(True))
    new = np.array([0.99])
    assert replicates.instead_of(new, posterior_of(0.0)) is new
    assert not marked
    assert replicates.instead_of(new, posterior_of(0.5))[0] in POINTS
    assert marked


def test_a_space_without_new_points_repeats_the_best() -> None:
    """The point that is proposed then was tried, too: a random one."""
    gp = posterior_of(0.5)
    found = Replicates(POINTS, lambda: None).instead_of(POINTS[4], gp)
    assert found[0] in POINTS[lowest(gp, 2)]
