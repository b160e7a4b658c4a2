"""Guesses of variables in config.pb and in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint import guess, when
from spearmint.config.reader import load_experiment
from spearmint.errors import ConfigError, InputError
from spearmint.search.space import read_space
from spearmint.store.distributions import guessed_points
from tests.spearmint.config.test_config import HEAD, load


def test_a_guess_and_its_spread(tmp_path: Path) -> None:
    lines = (
        'variable { name: "lr" type: FLOAT min: 0.001 max: 1 log: true guess: 0.01 spread: 0.1 }\n'
        'variable { name: "u" type: INT size: 2 min: 1 max: 99 guess: 64 }\n'
        'variable { name: "free" type: INT min: 1 max: 99 }\n'
    )
    lr, units, free = (variables := load(tmp_path, HEAD + lines).variables)
    assert (lr.guess, lr.spread) == (0.01, 0.1)
    assert (units.guess, units.spread) == (64.0, 0.2)
    assert free.guess is None
    assert guessed_points(variables) == [{"lr": 0.01, "u[0]": 64, "u[1]": 64}]


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("type: FLOAT min: 0 max: 1 guess: 2", ["'a'", "2", "3:48"]),
        ("type: INT min: 0 max: 9 guess: 2.5", ["'a'", "2.5", "whole number"]),
        ("type: FLOAT min: 0 max: 1 guess: nan", ["'a'", "nan"]),
        ("type: FLOAT min: 0 max: 1 guess: 1 spread: 0", ["'a'", "spread 0"]),
        ("type: FLOAT min: 0 max: 1 guess: 1 spread: 1.5", ["'a'", "spread 1.5"]),
        ("type: FLOAT min: 0 max: 1 spread: 0.1", ["'a'", "spread", "guess"]),
        ('type: ENUM options: "b" guess: 1', ["'a'", "seed_point"]),
    ],
)
def test_a_wrong_guess_is_an_error_with_its_line(
    tmp_path: Path, line: str, facts: list[str]
) -> None:
    path = tmp_path / "config.pb"
    path.write_text(HEAD + f'variable {{ name: "a" {line} }}\n')
    with pytest.raises(ConfigError) as caught:
        load_experiment(path)
    for fact in facts:
        assert fact in str(caught.value)


def test_a_guess_in_python_can_change(tmp_path: Path) -> None:
    space: dict[str, Any] = {"model": ["a", "b"], "x": when(guess((0, 1), 0.5), model="b")}
    with spearmint.Search(space, directory=tmp_path, method="RandomChooser") as search:
        first = search.ask()
        assert first.params == {"model": "b", "x": 0.5}
        search.tell(first, 1.0)
    space["x"] = when(guess((0, 1), 0.25, spread=0.5), model="b")
    with spearmint.Search(space, directory=tmp_path, method="RandomChooser") as search:
        assert search.ask().params == {"model": "b", "x": 0.25}
        assert len(search.trials) == 2
    assert load_experiment(tmp_path).variables[1].spread == 0.5


@pytest.mark.parametrize(
    ("space", "facts"),
    [
        ({"x": guess((0, 1), 2)}, ["'x'", "2"]),
        ({"x": guess((0, 1), 10**400)}, ["'x'", "too large", "from 0 to 1"]),
        ({"x": guess(range(9), 1.5)}, ["'x'", "1.5"]),
        ({"x": guess((0, 1), 0.5, spread=-1)}, ["'x'", "-1"]),
        ({"x": guess(["a"], 0.5)}, ["'x'", "choices"]),
        ({"x": guess((0, 1), "high")}, ["'x'", "'high'"]),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_guess_in_python_is_an_error(space: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_space(space)
    for fact in facts:
        assert fact in str(caught.value)


def test_guess_and_when_have_one_order() -> None:
    with pytest.raises(InputError, match="when"):
        guess(when((0, 1), a=True), 0.5)
