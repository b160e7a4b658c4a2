"""``Search.recommended``: by the expected value under noise, like ``spearmint best``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import spearmint
from spearmint.store.recommending import Recommendation

SPACE = {"x": (0.0, 1.0)}


def told(search: spearmint.Search, noise: float, n: int = 40) -> Recommendation | None:
    """Tell ``n`` values of a parabola, and return the recommendation."""
    rng = np.random.default_rng(3)
    for _ in range(n):
        trial = search.ask()
        search.tell(trial, (trial.params["x"] - 0.5) ** 2 + noise * rng.standard_normal())
    return search.recommended


def test_under_noise_it_is_not_the_luckiest(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, method="RandomChooser", seed=1) as search:
        assert search.recommended is None
        found = told(search, 0.2)
        assert found is not None
        assert found.luckiest == search.best
        assert isinstance(found.trial.params["x"], float), "as trials of a space are shown"
        assert found.expected is not None
        assert found.luckiest_expected is not None
        assert found.expected.expected <= found.luckiest_expected.expected
        assert found.expected.number == found.trial.id - 1
        assert abs(found.trial.params["x"] - 0.5) < abs(found.luckiest.params["x"] - 0.5)


def test_without_noise_it_is_the_best(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, method="RandomChooser", seed=1) as search:
        found = told(search, 0.0, n=4)
        assert found is not None
        assert found.trial == found.luckiest == search.best
        assert found.expected is None


def test_several_objectives_have_none(tmp_path: Path) -> None:
    two = {"a": "minimize", "b": "maximize"}
    with spearmint.Search(SPACE, directory=tmp_path, objectives=two) as search:
        search.tell(search.ask(), {"a": 1.0, "b": 1.0})
        assert search.recommended is None


def test_a_closed_search_still_recommends(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, method="RandomChooser") as search:
        search.tell(search.ask(), 1.0)
    assert search.recommended is not None
    assert search.recommended.trial == search.best
