"""Expected hypervolume improvement: against draws of the posterior, and its gradients."""

from __future__ import annotations

import numpy as np
import pytest
from optuna._hypervolume import compute_hypervolume
from scipy.optimize import approx_fprime

from spearmint.acquisition.log_ehvi import LogEHVI
from spearmint.acquisition.log_ehvi_many import LogEHVIMany, random_directions
from spearmint.gp.fit import fit
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Dimension, Space

SPACE = Space((Dimension(), Dimension()))
SETTINGS = Settings(mcmc_iters=3, warp=False, input_warp=False)


def models(count: int) -> tuple[Posterior, ...]:
    rng = np.random.default_rng(0)
    points = rng.random((9, 2))
    centres = rng.random((count, 2))
    values = [((points - centre) ** 2).sum(axis=1) for centre in centres]
    none = points[:0]
    return tuple(fit(SPACE, points, y, none, SETTINGS, rng) for y in values)


def drawn(posteriors: tuple[Posterior, ...], point: np.ndarray, n: int) -> np.ndarray:
    """Return draws of the objectives at ``point``, equally many of each sample."""
    rng = np.random.default_rng(1)
    columns = []
    for gp in posteriors:
        mean, variance = gp.predict(point[None])
        normal = rng.standard_normal((len(mean), n))
        columns.append((mean[:, 0] + np.sqrt(variance) * normal).ravel())
    return np.stack(columns, axis=1)


def gain(front: np.ndarray, y: np.ndarray, reference: np.ndarray) -> float:
    if not (y <= reference).all():
        return 0.0
    more = compute_hypervolume(np.vstack((front, y)), reference)
    return float(more - compute_hypervolume(front, reference))


FRONTS = {
    2: np.array([[-1.5, 0.2], [-1.0, -0.5], [0.0, -1.2]]),
    3: np.array([[-1.2, 0.0, 0.3], [0.1, -1.1, 0.0], [0.0, 0.2, -1.3]]),
}


def test_two_objectives_are_exact() -> None:
    gps, front, reference = models(2), FRONTS[2], np.array([1.0, 1.0])
    acquisition = LogEHVI((gps[0], gps[1]), front, reference)
    for point in np.random.default_rng(2).random((3, 2)):
        draws = drawn(gps, point, 1500)
        gains = [gain(front, y, reference) for y in draws]
        expected = float(np.exp(acquisition(point[None])[0]))
        error = np.std(gains) / np.sqrt(len(gains))
        # Where no draw has a gain, the error is 0 and a gain can be 1e-20.
        assert expected == pytest.approx(np.mean(gains), abs=5.0 * error + 1e-9)


@pytest.mark.parametrize("count", [2, 3])
def test_directions_give_the_same_up_to_a_constant(count: int) -> None:
    gps, front, reference = models(count), FRONTS[count], np.ones(count)
    rng = np.random.default_rng(3)
    directions = np.concatenate([random_directions(count, rng) for _ in range(40)])
    acquisition = LogEHVIMany(gps, front, reference, directions)
    points = rng.random((50, 2))
    points = points[np.argsort(-acquisition(points))[:20:5]]
    gains = np.array(
        [np.mean([gain(front, y, reference) for y in drawn(gps, p, 700)]) for p in points]
    )
    ratio = np.exp(acquisition(points)) / gains
    np.testing.assert_allclose(ratio / ratio.mean(), 1.0, atol=0.2)


@pytest.mark.parametrize("count", [2, 3])
def test_gradients(count: int) -> None:
    gps, front, reference = models(count), FRONTS[count], np.ones(count)
    directions = random_directions(count, np.random.default_rng(4))
    many = LogEHVIMany(gps, front, reference, directions)
    for acquisition in [many, LogEHVI((gps[0], gps[1]), front, reference)][: 4 - count]:
        points = np.random.default_rng(5).random((3, 2))
        values, gradients = acquisition.with_gradient(points)
        np.testing.assert_allclose(values, acquisition(points), rtol=1e-8)
        for point, gradient in zip(points, gradients, strict=True):
            expected = approx_fprime(point, lambda x, of=acquisition: of(x[None])[0], 1e-7)
            np.testing.assert_allclose(gradient, expected, rtol=2e-3, atol=1e-3)


def test_far_points_have_a_finite_logarithm() -> None:
    gps = models(2)
    acquisition = LogEHVI((gps[0], gps[1]), np.array([[-1e3, -1e3]]), np.array([-900.0, -900.0]))
    assert np.isfinite(acquisition(np.array([[0.5, 0.5]]))).all()
