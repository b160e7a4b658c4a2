"""Conditional variables of spearmint.Search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spearmint
from spearmint import when
from spearmint.errors import InputError, StudyMismatch
from spearmint.search.space import read_space

SPACE: dict[str, Any] = {
    "model": ["svm", "forest", None],
    "C": when((1e-3, 1e3, "log"), model="svm"),
    "depth": when(range(1, 5), model=["forest", None]),
    "bags": when(bool, {"depth": [1, 2]}, model="forest"),
}


def loss(model: str | None, C: float = 0.0, depth: int = 0, bags: bool | None = None) -> float:  # noqa: N803
    assert (C > 0.0) == (model == "svm")
    assert (depth > 0) == (model != "svm")
    assert (bags is not None) == (model == "forest" and depth < 3)
    return C + depth


def test_a_function_gets_the_variables_of_its_branch(tmp_path: Path) -> None:
    with spearmint.Search(SPACE, directory=tmp_path, method="RandomChooser", seed=2) as search:
        best = search.minimize(loss, trials=2, progress=False)
        assert best.value == loss(**best.params)
        for trial in search.ask_many(6):
            search.tell(trial, loss(**trial.params))
        params = [trial.params for trial in search.trials]
        assert {"svm" in p.values() for p in params} == {True, False}
        assert "<td></td>" in search._repr_html_()
    with spearmint.Search(SPACE, directory=tmp_path) as same:
        assert len(same.trials) == 8
    with pytest.raises(StudyMismatch, match="when model=svm"):
        spearmint.Search({**SPACE, "C": (1e-3, 1e3, "log")}, directory=tmp_path)


@pytest.mark.parametrize(
    ("space", "facts"),
    [
        ({"C": when((0, 1), model="svm")}, ["'C'", "'model'"]),
        ({"m": ["a"], "C": when((0, 1), m="b")}, ["'C'", "'b'", "'m'"]),
        ({"m": (0, 1), "C": when((0, 1), m=0.5)}, ["'C'", "'m'", "FLOAT"]),
        ({"a": when(bool, b=True), "b": when(bool, a=True)}, ["a -> b -> a"]),
        ({"m": range(9), "C": when((0, 1), m=10**5000)}, ["when()", "too large"]),
        ({"m": bool, "C": when("x", m=True)}, ["'C'", "'x'"]),
    ],
)
def test_a_wrong_condition_is_an_error(space: dict[str, Any], facts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_space(space)
    for fact in facts:
        assert fact in str(caught.value)


def test_wrong_calls_of_when() -> None:
    with pytest.raises(InputError, match="when"):
        when((0, 1))
    with pytest.raises(InputError, match="one call"):
        when(when((0, 1), a=True), b=True)


def needs_all(model: str, C: float, depth: int, bags: bool = False) -> float:  # noqa: N803
    return 0.0


def test_an_argument_of_a_conditional_variable_needs_a_default(tmp_path: Path) -> None:
    with (
        spearmint.Search(SPACE, directory=tmp_path) as search,
        pytest.raises(InputError, match=r"'C'.*default"),
    ):
        search.minimize(needs_all, trials=1, progress=False)


def test_choices_that_look_like_several_are_never_mistaken() -> None:
    choices = ["x|y", "x", "y"]
    space = read_space({"m": choices, "c": when((0, 1), m=["x", "x|y"])})
    assert space.variables[1].when[0].values == ("x|y", "x")
    with pytest.raises(InputError, match=r"'c'.*'x\|y' is also a choice"):
        read_space({"m": choices, "c": when((0, 1), m=["x", "y"])})


def test_the_values_of_a_set_or_array_have_one_order() -> None:
    names = [f"model{i}" for i in range(9)]
    space = read_space({"m": names, "c": when((0, 1), m=set(names)), "n": range(4)})
    assert space.variables[1].when[0].values == tuple(names)
    some = read_space({"n": range(4), "c": when((0, 1), n=np.array([2, 1]))})
    assert some.variables[1].when[0].values == (1, 2)
