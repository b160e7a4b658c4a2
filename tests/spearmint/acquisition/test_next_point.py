from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from spearmint.acquisition import next_point as search
from spearmint.acquisition.log_ei import LogEI
from spearmint.acquisition.maximize import candidates, maximize
from spearmint.acquisition.next_point import MAX_OBSERVATIONS, first_new, next_point
from spearmint.gp.fit import fit
from spearmint.gp.settings import Settings
from spearmint.gp.space import Dimension, Space

MIXED = Space(
    (
        Dimension(),
        Dimension(low=0, high=1000, step=1),
        Dimension(low=0, high=9, step=1),
        Dimension(n_choices=5),
    )
)


class Bowl:
    """An acquisition with the maximum 0 at ``top``; a wrong category counts as one step."""

    def __init__(self, top) -> None:
        self.top = np.array(top)

    def __call__(self, points):
        delta = points - self.top
        delta[:, 3] = delta[:, 3] != 0.0
        return -np.sum(delta**2, axis=1)

    def with_gradient(self, points):
        gradient = -2.0 * (points - self.top)
        gradient[:, 3] = 0.0
        return self(points), gradient


def test_candidates_are_legal_points() -> None:
    best = MIXED.from_cube(np.random.default_rng(0).random((5, 4)))
    points = candidates(MIXED, best, np.random.default_rng(1), n_global=256)
    np.testing.assert_allclose(MIXED.snap(points), points, atol=1e-12)
    assert set(points[:, 3]) == {0.0, 1.0, 2.0, 3.0, 4.0}
    # Some candidates are near the best point, at all scales.
    near = np.abs(points[:, 0] - best[0, 0])
    assert ((near > 0.0) & (near < 1e-2)).any()


def test_the_maximum_of_a_mixed_space_is_found() -> None:
    top = MIXED.from_cube(np.array([[0.123456, 0.345, 0.61, 0.7]]))[0]
    rng = np.random.default_rng(0)
    # The starts are far away, with the wrong category and levels.
    pool = MIXED.from_cube(rng.random((60, 4)) * np.array([1.0, 1.0, 0.6, 0.3]))
    ranked = maximize(
        Bowl(top), MIXED, pool, rng, n_starts=5, max_evaluations=60, rough=Bowl(top + 0.1)
    )
    np.testing.assert_allclose(ranked[0], top, atol=1e-3)
    values = Bowl(top)(ranked[: -len(pool)])
    assert all(a >= b for a, b in pairwise(values))


def test_first_new_skips_what_was_seen_and_then_looks_everywhere() -> None:
    space = Space((Dimension(n_choices=2), Dimension(low=0, high=2, step=1)))
    rng = np.random.default_rng(0)
    everything = np.array([[c, (i + 0.5) / 3.0] for c in (0.0, 1.0) for i in range(3)])
    assert first_new(space, everything, everything[:2], rng).tolist() == everything[2].tolist()
    left = first_new(space, everything[:4], everything[:5], rng)
    np.testing.assert_allclose(left, everything[5])
    assert first_new(space, everything, everything, rng) in everything


@pytest.mark.parametrize("n", [300, MAX_OBSERVATIONS + 10])
def test_many_observations_are_thinned(n: int, monkeypatch) -> None:
    monkeypatch.setattr("spearmint.acquisition.next_point.MAX_OBSERVATIONS", 400)
    space = Space((Dimension(), Dimension()))
    points = np.random.default_rng(0).random((n, 2))
    y = np.sum((points - 0.4) ** 2, axis=1)
    none = np.empty((0, 2))
    settings = Settings(mcmc_iters=2, burnin=1)
    found = next_point(space, points, y, none, settings, np.random.default_rng(1))
    assert found.shape == (2,)
    assert ((found >= 0.0) & (found <= 1.0)).all()


def margins_of(monkeypatch, settings: Settings, noise: float) -> list[float]:
    """Return the margins of 25 proposals after trials of a bowl with noise."""
    margins = []

    class Recorded(LogEI):
        def __init__(self, posterior, *, margin: float) -> None:
            margins.append(margin)
            super().__init__(posterior, margin=margin)

    monkeypatch.setattr("spearmint.acquisition.next_point.LogEI", Recorded)
    space, points, y = converged_bowl()
    y = y + noise * np.random.default_rng(0).standard_normal(len(y))
    for seed in range(25):
        rng = np.random.default_rng(seed)
        next_point(space, points, y, np.empty((0, 2)), settings, rng)
    # The candidates are ranked with the same margin.
    assert margins[::2] == margins[1::2]
    return margins


@pytest.mark.parametrize(("noise", "least", "most"), [(0.1, 0.15, 0.2), (0.0, 1e-6, 0.01)])
def test_a_margin_now_and_then_follows_the_noise(
    noise: float, least: float, most: float, monkeypatch
) -> None:
    settings = Settings(mcmc_iters=2, burnin=1, grid_subset=1)
    margins = np.array(margins_of(monkeypatch, settings, noise))
    wide = margins[margins > 0.0]
    assert 0 < len(wide) < len(margins) / 2
    assert (wide >= least).all()
    assert (wide <= most).all()


def test_no_margin_if_no_noise_was_declared(monkeypatch) -> None:
    settings = Settings(mcmc_iters=1, burnin=0, grid_subset=1, noiseless=True)
    assert set(margins_of(monkeypatch, settings, 0.1)) == {0.0}


def converged_bowl() -> tuple[Space, np.ndarray, np.ndarray]:
    """Return a plane and trials of a bowl: some spread out, many near its minimum (0.3, 0.6)."""
    rng, bottom = np.random.default_rng(3), np.array([0.3, 0.6])
    points = np.concatenate((rng.random((8, 2)), bottom + rng.normal(0.0, 0.01, (8, 2))))
    return Space((Dimension(), Dimension())), points, np.sum((points - bottom) ** 2, axis=1)


def proposals(settings: Settings, count: int = 6, noise: float = 0.0) -> np.ndarray:
    space, points, y = converged_bowl()
    y = y + noise * np.random.default_rng(0).standard_normal(len(y))
    none = np.empty((0, 2))
    seeds = [np.random.default_rng(seed) for seed in range(count)]
    return np.array([next_point(space, points, y, none, settings, rng) for rng in seeds])


@pytest.mark.parametrize("declared", [True, False])
def test_a_converged_search_without_noise_polishes_by_turns(declared: bool, monkeypatch) -> None:
    settings = Settings(noiseless=declared)
    away = {}
    for share in (0.0, 1.0):
        monkeypatch.setattr(search, "_POLISH_SHARE", share)
        away[share] = np.abs(proposals(settings) - [0.3, 0.6]).max(axis=1)
    # Expected improvement explores; the lowest mean of a smooth bowl is near its minimum.
    assert np.median(away[1.0]) < 1e-3
    assert np.median(away[0.0]) > 3.0 * np.median(away[1.0])


@pytest.mark.parametrize(
    ("settings", "noise"), [(Settings(), 0.02), (Settings(noiseless=True, grid_size=256), 0.0)]
)
def test_no_polish_under_noise_nor_on_a_grid(settings: Settings, noise: float, monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("polished")

    monkeypatch.setattr(search, "_lowest_mean", refuse)
    monkeypatch.setattr(search, "_POLISH_SHARE", 1.0)
    assert len(proposals(settings, count=2, noise=noise)) == 2


def test_no_polish_among_categories(monkeypatch) -> None:
    monkeypatch.setattr(search, "_lowest_mean", lambda *_: pytest.fail("polished"))
    monkeypatch.setattr(search, "_POLISH_SHARE", 1.0)
    _, points, y = converged_bowl()
    space = Space((Dimension(), Dimension(), Dimension(n_choices=2)))
    # The model knows that the other category is worse everywhere: the search has converged.
    points = np.vstack([np.column_stack((points, np.full(len(y), c))) for c in (0.0, 1.0)])
    y, none = np.concatenate((y, y + 1.0)), np.empty((0, 3))
    settings, rng = Settings(noiseless=True), np.random.default_rng(0)
    assert next_point(space, points, y, none, settings, rng).shape == (3,)


def test_no_polish_before_the_search_has_converged(monkeypatch) -> None:
    monkeypatch.setattr(search, "_lowest_mean", lambda *_: pytest.fail("polished"))
    monkeypatch.setattr(search, "_POLISH_SHARE", 1.0)
    space = Space((Dimension(), Dimension()))
    points = np.random.default_rng(0).random((6, 2))
    y = np.sin(9.0 * points).sum(axis=1)
    settings, none = Settings(noiseless=True), np.empty((0, 2))
    found = next_point(space, points, y, none, settings, np.random.default_rng(1))
    assert found.shape == (2,)


def test_what_is_known_is_not_polished() -> None:
    space, points, y = converged_bowl()
    none, rng = np.empty((0, 2)), np.random.default_rng(0)
    posterior = fit(space, points, y, none, Settings(noiseless=True), rng)
    (lowest,) = search._lowest_mean(space, posterior, points[-4:], points)
    again = search._lowest_mean(space, posterior, points[-4:], np.vstack((points, lowest)))
    assert len(again) == 0


def test_of_several_minima_the_lowest_is_polished() -> None:
    space, none = Space((Dimension(),)), np.empty((0, 1))
    points = np.linspace(0.0, 1.0, 21)[:, None]
    y = np.cos(4.0 * np.pi * points[:, 0]) + 0.5 * points[:, 0]
    posterior = fit(space, points, y, none, Settings(noiseless=True), np.random.default_rng(0))
    for starts in ([[0.3], [0.8]], [[0.8], [0.3]]):
        (lowest,) = search._lowest_mean(space, posterior, np.array(starts), points)
        assert lowest == pytest.approx(0.25, abs=0.02)


def test_a_thousand_trials_and_a_thousand_running_are_a_model_of_800(monkeypatch) -> None:
    sizes = []

    def recorded(space, points, y, pending, settings, rng):
        sizes.append((len(points), len(y), len(pending)))
        kept = {tuple(point) for point in pending}
        assert len(kept) == len(pending)
        assert tuple(running[-1]) in kept
        assert y.min() == values.min()
        return fit(space, points[:20], y[:20], pending[:5], settings, rng)

    monkeypatch.setattr(search, "fit", recorded)
    space = Space((Dimension(), Dimension()))
    points, running = np.random.default_rng(0).random((2, 1001, 2))
    values = np.sum((points - 0.4) ** 2, axis=1)
    settings = Settings(mcmc_iters=2, burnin=1)
    found = next_point(space, points, values, running, settings, np.random.default_rng(1))
    assert sizes == [(500, 500, 300)]
    assert found.shape == (2,)
