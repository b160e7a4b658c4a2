"""Constraints of spearmint.Search."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.errors import InputError, StudyMismatch

SPACE = {"x": (0, 1)}
LIMITS = {"memory_gb": (None, 80)}


def measured(x: float) -> dict[str, float]:
    return {"objective": x, "memory_gb": 100 - 100 * x}


def test_a_function_returns_its_constraints(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, constraints=LIMITS, seed=3) as search:
        best = search.minimize(measured, trials=8, progress=False)
        assert best is not None
        assert best.is_feasible
        assert best.constraints["memory_gb"] == pytest.approx(100 - 100 * best.params["x"])
        assert best.value < 0.3
        assert not all(trial.is_feasible for trial in search.trials)
        assert "infeasible" in search._repr_html_()
        frame = search.dataframe()
        assert list(frame.feasible) == [trial.is_feasible for trial in search.trials]
    with pytest.raises(StudyMismatch, match="memory_gb"):
        spearmint.Search(SPACE, directory=tmp_path, constraints={"memory_gb": (None, 90)})
    with spearmint.Search(SPACE, directory=tmp_path, constraints=LIMITS) as same:
        assert same.best is not None
        assert same.best.id == best.id


def test_ask_and_tell(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, constraints=LIMITS) as search:
        first, second, third = search.ask_many(3)
        search.tell(first, {"objective": 0.25, "memory_gb": 81})
        assert search.best is None
        assert "none feasible" in repr(search)
        for wrong in (0.5, {"objective": 0.5}, {"objective": 0.5, "memory_gb": math.nan}):
            with pytest.raises(InputError, match="memory_gb"):
                search.tell(second, wrong)
        search.tell(second, {"objective": 0.5, "memory_gb": 80})
        search.tell(third, None)
        assert search.best is not None
        assert search.best.id == second.id


@pytest.mark.parametrize(
    "constraints",
    [
        {"m": 80},
        {"m": (None, None)},
        {"m": (2, 1)},
        {"m": (0, math.nan)},
        {"m": (None, 10**400)},
        {"m": ("0", 1)},
        {"x": (0, 1)},
        {"objective": (0, 1)},
        {"": (0, 1)},
        {7: (0, 1)},
        ["m"],
    ],
)
def test_wrong_constraints_are_refused(tmp_path: Path, constraints: Any) -> None:
    with pytest.raises(InputError):
        spearmint.Search(SPACE, directory=tmp_path, constraints=constraints)
