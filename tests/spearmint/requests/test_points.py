"""Points as users write them: products, vectors, bounds."""

from __future__ import annotations

import pytest

from spearmint.conditions import Condition
from spearmint.errors import InputError
from spearmint.model import Kind, Variable
from spearmint.requests.points import read_points

SPACE = (
    Variable(name="lr", kind=Kind.FLOAT, low=1e-3, high=1, log=True),
    Variable(name="units", kind=Kind.INT, low=1, high=256),
    Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh")),
    Variable(name="X", kind=Kind.FLOAT, size=2, low=0, high=1),
)


def test_values_of_several_variables_make_all_combinations() -> None:
    points = read_points(["lr=0.1", "units={64,128}", "act={relu,tanh}"], SPACE)
    assert points == [
        {"lr": 0.1, "units": units, "act": act} for units in (64, 128) for act in ("relu", "tanh")
    ]


def test_a_shell_that_expands_the_braces_gives_the_same() -> None:
    expanded = read_points(["lr=0.1", "units=64", "units=128"], SPACE)
    assert expanded == read_points(["lr=0.1", "units={64,128}"], SPACE)


def test_the_same_value_twice_is_one_point() -> None:
    assert read_points(["units={64,64}", "units=64.0"], SPACE) == [{"units": 64}]


def test_a_vector_has_a_value_for_each_element() -> None:
    assert read_points(["X=0,0.5", "X=1,1"], SPACE) == [
        {"X[0]": 0.0, "X[1]": 0.5},
        {"X[0]": 1.0, "X[1]": 1.0},
    ]
    assert read_points(["X[1]={0.25,1}"], SPACE) == [{"X[1]": 0.25}, {"X[1]": 1.0}]


def test_whole_numbers_are_floats_where_the_variable_is() -> None:
    (point,) = read_points(["lr=1", "units=1e2"], SPACE)
    assert (type(point["lr"]), point["units"], type(point["units"])) == (float, 100, int)


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("lr=7", "0.001"),
        ("lr=nan", "lr=nan"),
        ("lr=inf", "lr=inf"),
        ("lr=", "lr="),
        ("lr", "lr"),
        ("units=1.5", "units=1.5"),
        ("units=64,128", "'units={64,128}'"),
        ("act=gelu", "relu, tanh"),
        ("X=0.5", "2"),
        ("X={0,1}", "X"),
        ("unit=3", "units"),
        ("units={}", "units="),
        ("=3", "lr"),
    ],
)
def test_a_wrong_word_is_named(word: str, named: str) -> None:
    with pytest.raises(InputError, match=r"(?s).*") as caught:
        read_points([word], SPACE)
    assert named in str(caught.value)


def test_an_element_and_its_vector_contradict() -> None:
    with pytest.raises(InputError, match=r"X\[0\]"):
        read_points(["X=0,0", "X[0]=1"], SPACE)


def test_too_many_points_are_refused_before_they_are_made() -> None:
    many = "{" + ",".join(map(str, range(1, 257))) + "}"
    rates = "{" + ",".join(f"0.{n:03d}" for n in range(1, 200)) + "}"
    with pytest.raises(InputError, match=str(256 * 199)):
        read_points([f"units={many}", f"lr={rates}"], SPACE)


BRANCHES = (
    Variable(name="model", kind=Kind.ENUM, options=("svm", "forest")),
    Variable(name="C", kind=Kind.FLOAT, low=0, high=9, when=(Condition("model", ("svm",)),)),
    Variable(name="x", kind=Kind.FLOAT, low=0, high=1),
)


def test_combinations_have_only_the_variables_of_their_branch() -> None:
    points = read_points(["model={svm,forest}", "C={1,2}", "x=0.5"], BRANCHES)
    assert points == [
        {"model": "svm", "C": 1.0, "x": 0.5},
        {"model": "svm", "C": 2.0, "x": 0.5},
        {"model": "forest", "x": 0.5},
    ]
    assert read_points(["x=0.5"], BRANCHES) == [{"x": 0.5}]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["C=1"], ["C", "model=svm", "Give model"]),
        (["C=1", "x=0"], ["C", "model=svm", "Give model"]),
        (["model=forest", "C=1"], ["C", "model=svm", "forest"]),
    ],
)
def test_a_variable_that_is_never_active_is_an_error(words: list[str], facts: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read_points(words, BRANCHES)
    for fact in facts:
        assert fact in str(caught.value)
