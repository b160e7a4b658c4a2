"""Linear constraints of spearmint.Search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint import guess
from spearmint.errors import ConfigError, InputError

SPACE = {"first": range(1, 100), "second": range(1, 100), "x": (0.0, 1.0)}


@pytest.mark.parametrize("method", ["SequentialChooser", "TPESampler"])
def test_proposals_meet_the_constraints(tmp_path: Path, method: str) -> None:
    options: dict[str, Any] = {"directory": tmp_path, "method": method}
    require = ["first >= second", "x + first / 100 <= 0.5"]
    with spearmint.Search(SPACE, require=require, **options) as search:
        asked = [search.ask(), *search.ask_many(3)]
        for trial in asked:
            values = trial.params
            assert values["second"] <= values["first"] <= 50 - 100 * values["x"]
            search.tell(trial, values["x"])
    # The constraints can change, and are those of config.pb for the commands.
    with spearmint.Search(SPACE, require="second >= 90", **options) as search:
        assert search.ask().params["second"] >= 90
        assert len(search.trials) == 5
    assert 'require: "second >= 90"' in (tmp_path / "config.pb").read_text()
    with spearmint.Search(tmp_path / "config.pb") as search:
        assert len(search.trials) == 5
    with spearmint.Search(SPACE, **options):
        assert "require" not in (tmp_path / "config.pb").read_text()


@pytest.mark.parametrize(
    ("require", "fact"),
    [("first >= third", "third"), ([3], "3"), ("first >= 100", "no point"), (["\ud800"], "ud800")],
)
def test_a_wrong_constraint_is_an_error(tmp_path: Path, require: Any, fact: str) -> None:
    with pytest.raises(InputError, match=fact):
        spearmint.Search(SPACE, directory=tmp_path, require=require)


def test_constraints_that_exclude_each_other(tmp_path: Path) -> None:
    require = ["first >= second + 50", "x <= 1", "second >= first"]
    with pytest.raises(ConfigError) as caught:
        spearmint.Search(SPACE, directory=tmp_path, require=require)
    assert "'first >= second + 50' and 'second >= first'" in str(caught.value)
    assert "x <= 1" not in str(caught.value)
    with spearmint.Search(SPACE, directory=tmp_path, require=require[:2]) as search:
        assert search.trials == []


def test_guesses_meet_the_constraints(tmp_path: Path) -> None:
    space = {**SPACE, "x": guess((0.0, 1.0), 0.8)}
    with pytest.raises(InputError, match="guess"):
        spearmint.Search(space, directory=tmp_path, require="x <= 0.7")
    apart = ["x + first / 100 <= 0.85", "first + second >= 120"]
    with pytest.raises(InputError, match="guess"):
        spearmint.Search(space, directory=tmp_path, require=apart)
    options: dict[str, Any] = {"directory": tmp_path, "method": "RandomChooser"}
    with spearmint.Search(space, require="x + first / 100 <= 0.85", **options) as search:
        first = search.ask().params
    assert first["x"] == 0.8
    assert first["first"] <= 5
