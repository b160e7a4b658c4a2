"""Spaces in Python: each form, and a message for each wrong one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from spearmint.errors import InputError
from spearmint.model import Kind, Variable
from spearmint.search.space import read_space


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ((0, 1), Variable(name="v", kind=Kind.FLOAT, low=0.0, high=1.0)),
        ((1e-5, 1, "log"), Variable(name="v", kind=Kind.FLOAT, low=1e-5, high=1.0, log=True)),
        ((np.float32(0.5), np.int64(2)), Variable(name="v", kind=Kind.FLOAT, low=0.5, high=2.0)),
        (range(16, 513), Variable(name="v", kind=Kind.INT, low=16, high=512)),
        ((range(1, 9), "log"), Variable(name="v", kind=Kind.INT, low=1, high=8, log=True)),
        (["relu", 3, None], Variable(name="v", kind=Kind.ENUM, options=("relu", "3", "None"))),
        (bool, Variable(name="v", kind=Kind.ENUM, options=("False", "True"))),
    ],
)
def test_each_form_is_a_variable(form: Any, expected: Variable) -> None:
    assert read_space({"v": form}).variables == (expected,)


def test_the_function_receives_the_values_of_the_space() -> None:
    space = read_space({"b": bool, "c": [1, "x", None, np.int64(7)], "x": (0, 1), "n": range(3)})
    params = {"b": ("True",), "c": ("7",), "x": (0.5,), "n": (2,)}
    values = space.values(params)
    assert values == {"b": True, "c": 7, "x": 0.5, "n": 2}
    assert [type(value) for value in values.values()] == [bool, int, float, int]
    assert space.values({"c": ("None",)}) == {"c": None}


@pytest.mark.parametrize(
    ("form", "fact"),
    [
        ((1, 0), r"\(1, 0\)"),
        ((0, 1, "log"), "log"),
        ((range(9), "log"), "log"),
        ((1, 2, "lin"), "'lin'"),
        ((1, 2, 3), r"\(1, 2, 3\)"),
        ((1,), r"\(1,\)"),
        ((), r"\(\)"),
        (("relu", "tanh"), r"\['relu', 'tanh'\]"),
        ((True, False), r"\(True, False\)"),
        ((0, math.nan), "nan"),
        ((0, math.inf), "inf"),
        (range(5, 5), r"range\(5, 5\)"),
        (range(0, 100, 10), r"list\(range\(0, 100, 10\)\)"),
        (range(2**60), r"2\*\*53"),
        ([], r"\[\]"),
        (["a", "a"], "'a'"),
        ([1, "1"], "'1'"),
        ([{"a": 1}], r"\{'a': 1\}"),
        (0.5, r"0\.5"),
        ("relu", "'relu'"),
        (None, "None"),
        (True, r"\bbool\b"),
        ({"a", "b"}, r"\bset\b"),
        (np.linspace(0, 1, 3), r"\bndarray\b"),
        (int, r"\btype\b"),
        ([np.array([1, 2])], r"array\(\[1, 2\]\)"),
        ((0, 10**400), "bound is too large"),
        ((0, 10**5000), "bound is too large: a tuple"),
        (range(10**400), "bound is too large"),
        ([10**5000], "choice is too large"),
        (["\ud800"], r"not valid Unicode.*\\ud800"),
    ],
)
def test_a_wrong_form_is_named_with_its_variable(form: Any, fact: str) -> None:
    with pytest.raises(InputError, match=rf"(?s)'lr'.*{fact}"):
        read_space({"ok": (0, 1), "lr": form})


@pytest.mark.parametrize("space", [{}, {"": (0, 1)}, {3: (0, 1)}, {"\ud800": (0, 1)}])
def test_a_space_needs_names(space: Any) -> None:
    with pytest.raises(InputError):
        read_space(space)
