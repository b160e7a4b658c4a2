"""How a function receives the variables."""

from __future__ import annotations

import ast
import functools
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import spearmint
from spearmint.errors import InputError
from spearmint.model import Experiment, Language
from spearmint.search.digest import digest_of
from spearmint.search.function import store_function, takes_names
from spearmint.search.space import read_space


def one_dict(params: Any) -> None: ...


def with_option(params: Any, scale: int = 1) -> None: ...


def by_name(lr: float, units: int) -> None: ...


def with_more(lr: float, units: int = 3, verbose: bool = False) -> None: ...


def anything(**params: Any) -> None: ...


def keywords(*, units: int, lr: float) -> None: ...


def no_units(lr: float) -> None: ...


def other(lr: float, units: int, batch: int) -> None: ...


def nothing() -> None: ...


def two(a: Any, b: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (one_dict, False),
        (with_option, False),
        (by_name, True),
        (with_more, True),
        (anything, True),
        (keywords, True),
        (math.sqrt, False),
        (lambda *args: 0, False),
    ],
)
def test_arguments_with_the_names_of_variables_receive_them(
    function: Callable[..., Any], expected: bool
) -> None:
    assert takes_names(function, ["lr", "units"]) is expected


@pytest.mark.parametrize(
    ("function", "fact"),
    [(no_units, "'units'"), (other, "'batch'"), (nothing, "nothing"), (two, "two")],
)
def test_a_function_that_cannot_receive_them_is_refused(
    function: Callable[..., Any], fact: str
) -> None:
    with pytest.raises(InputError, match=fact):
        takes_names(function, ["lr", "units"])


CODE = """
def part(x):
    return x in {{"a", "b", "c", "d", "e"}}, {value}

def objective(x):
    return (lambda y: part(y))(x), y in {{1.5, "f", "g", "h"}}
"""


def digest_in_process(tmp_path: Path, seed: int, value: int, *, has_source: bool) -> str:
    code = CODE.format(value=value)
    (tmp_path / "script.py").write_text(
        (code if has_source else f"exec({code!r})\n")
        + "from spearmint.search.digest import digest_of\nprint(digest_of(objective))\n"
    )
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("has_source", [True, False])
def test_a_digest_changes_only_with_the_code(tmp_path: Path, has_source: bool) -> None:
    digests = [
        digest_in_process(tmp_path, seed, value, has_source=has_source)
        for seed, value in ((1, 0), (2, 0), (3, 0), (1, 9))
    ]
    assert len(set(digests[:3])) == 1
    assert digests[3] != digests[0]


class Callee:
    def __call__(self, x: float) -> float:
        return x


@pytest.mark.parametrize(
    "function", [math.sqrt, Callee(), Callee().__call__, functools.partial(two, b=1), Callee]
)
def test_each_function_has_a_digest(function: Callable[..., Any]) -> None:
    assert digest_of(function) == digest_of(function)


def test_the_name_of_a_function_cannot_end_the_docstring(tmp_path: Path) -> None:
    def function(x: float) -> float:
        return x

    function.__name__ = 'f"""\nraise SystemExit(7)\n"""\\'
    space = read_space({"x": (0, 1)})
    experiment = Experiment(
        path=tmp_path / "config.pb", name="net", language=Language.PYTHON, variables=()
    )
    (tmp_path / ".spearmint").mkdir()
    store_function(experiment, space, function)
    tree = ast.parse((tmp_path / "net.py").read_text())
    assert not any(isinstance(each, ast.Raise) for each in ast.walk(tree))


def test_a_deleted_working_directory_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with spearmint.Search({"x": (0, 1)}, directory=tmp_path / "out") as search:
        gone.rmdir()
        with pytest.raises(InputError, match="working directory"):
            search.minimize(lambda x: x, 1)
        monkeypatch.chdir(tmp_path)
