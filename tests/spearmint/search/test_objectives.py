"""Several objectives of spearmint.Search."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.errors import InputError, StudyMismatch

SPACE = {"x": (0, 1)}
GOALS = {"error": "minimize", "speed": "maximize"}


def measured(x: float) -> dict[str, float]:
    return {"error": (x - 0.5) ** 2, "speed": x}


def test_a_function_returns_its_objectives(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, objectives=GOALS, seed=3) as search:
        assert search.minimize(measured, trials=8, progress=False) is None
        front = search.front
        assert front
        assert all(0.4 <= trial.params["x"] <= 1.0 for trial in front)
        errors = [trial.objectives["error"] for trial in front]
        assert errors == sorted(errors)
        assert search.best is None
        assert "Pareto front" in repr(search)
        assert "speed" in search._repr_html_()
        assert list(search.dataframe().speed) == [t.objectives["speed"] for t in search.trials]
        with pytest.raises(InputError, match="minimize"):
            search.maximize(measured, trials=9)
    with pytest.raises(StudyMismatch, match="speed"):
        spearmint.Search(SPACE, directory=tmp_path, objectives={**GOALS, "speed": "minimize"})


def test_a_reference_can_be_given_and_changed(tmp_path: Path) -> None:
    for worst in (0.5, 0.25):
        goals = {"error": "minimize", "speed": ("maximize", worst)}
        with spearmint.Search(SPACE, directory=tmp_path, objectives=goals) as search:
            search.tell(search.ask(), {"error": 1.0, "speed": worst})
            chooser = search._study._study.sampler
            assert chooser.references[1] == -worst
    assert f"reference: {worst}" in (tmp_path / "config.pb").read_text()
    large = ("maximize", 10**400)
    for wrong in (large, ("maximize", math.inf), ("maximize", "fast"), ("up", 1.0)):
        with pytest.raises(InputError, match="'speed' has the"):
            spearmint.Search(SPACE, directory=tmp_path, objectives={**GOALS, "speed": wrong})
    with pytest.raises(InputError, match="needs several"):
        spearmint.Search(SPACE, directory=tmp_path, objectives={"speed": ("maximize", 1)})


def test_one_named_objective_is_the_value(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, objectives={"speed": "maximize"}) as search:
        first, second = search.ask_many(2)
        search.tell(first, {"speed": 1.0})
        search.tell(second, 2.0)
        assert search.best is not None
        assert search.best.value == 2.0
        assert search.front == []


def test_ask_and_tell_with_constraints(tmp_path: Path) -> None:
    limits = {"memory_gb": (None, 80)}
    with spearmint.Search(
        SPACE, directory=tmp_path, objectives=GOALS, constraints=limits
    ) as search:
        first, second, third = search.ask_many(3)
        search.tell(first, {"error": 1.0, "speed": 1.0, "memory_gb": 81})
        assert search.front == []
        search.tell(second, {"error": 2.0, "speed": 0.5, "memory_gb": 80})
        with pytest.raises(InputError, match="speed"):
            search.tell(third, {"error": 1.0, "memory_gb": 1})
        search.tell(third, {"error": 1.0, "speed": 0.0, "memory_gb": 1})
        assert [trial.id for trial in search.front] == [third.id, second.id]


def test_a_pruner_needs_one_objective(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="median"):
        spearmint.Search(SPACE, directory=tmp_path, objectives=GOALS, pruner="median")


@pytest.mark.parametrize(
    "objectives",
    [
        {},
        {"x": "minimize"},
        {"value": "minimize"},
        {"error": "down"},
        {"": "minimize"},
        ["error"],
    ],
)
def test_wrong_objectives_are_refused(tmp_path: Path, objectives: Any) -> None:
    with pytest.raises(InputError):
        spearmint.Search(SPACE, directory=tmp_path, objectives=objectives)


def test_a_direction_is_that_of_one_objective(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="objectives"):
        spearmint.Search(SPACE, directory=tmp_path, objectives=GOALS, direction="maximize")
