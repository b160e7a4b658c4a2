"""Histories that break things: every chooser of ours proposes a legal point and says nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial

from spearmint.choosers import CHOOSERS
from spearmint.choosers.testing import (
    FLOATS,
    MIXED,
    Distributions,
    assert_legal,
    proposals,
    study_with,
    value_of,
)
from spearmint.model import Kind, Variable
from spearmint.store.distributions import distributions
from tests.pairs import pairs


@pytest.fixture(params=list(CHOOSERS))
def name(request) -> str:
    return request.param


def infinite_at_times(params: dict[str, Any]) -> float:
    return (math.inf, -math.inf, 1.0, 2.0)[int(params["x0"] > 0) + 2 * int(params["x1"] > 0)]


VALUES = {
    "equal": lambda p: 3.0,
    "zero": lambda p: 0.0,
    "1e300": lambda p: p["x0"] * 1e300,
    "huge": lambda p: math.copysign(1.7e308, p["x0"]),
    "exponential": lambda p: math.exp(300.0 * p["x0"]),
    "tiny": lambda p: p["x0"] * 1e-310,
    "infinite": lambda p: math.inf,
    "some infinite": infinite_at_times,
}


@pytest.mark.parametrize(("name", "value", "maximize"), pairs(CHOOSERS, VALUES, [False, True]))
def test_values_of_any_size(name: str, value: str, maximize: bool) -> None:
    study = study_with(name, FLOATS, finished=20, pending=1, value=VALUES[value], maximize=maximize)
    for params in proposals(study, FLOATS, 2):
        assert_legal(params, FLOATS)


@pytest.mark.parametrize("finite", [0, 1, 2])
def test_few_finite_values(name: str, finite: int) -> None:
    study = study_with(name, FLOATS, finished=0, pending=1)
    for i in range(8):
        at = dict.fromkeys(FLOATS, -1.5 + 0.4 * i)
        value = float(i) if i < finite else math.inf
        study.add_trial(create_trial(params=at, distributions=FLOATS, value=value))
    for params in proposals(study, FLOATS, 2):
        assert_legal(params, FLOATS)


def test_not_a_number(name: str) -> None:
    study = study_with(name, FLOATS, finished=5)
    study.optimize(
        lambda trial: math.nan * sum(trial.suggest_float(k, -2.0, 2.0) for k in FLOATS), n_trials=3
    )
    assert [t.state for t in study.trials[5:]] == [TrialState.FAIL] * 3
    assert_legal(proposals(study, FLOATS)[0], FLOATS)


OTHERS = [name for name in CHOOSERS if name != "GPEIperSecChooser"]
SECONDS = [0.0, -1.0, math.inf, math.nan, 1e-300, 1e300, None, "long"]


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        *(("GPEIperSecChooser", seconds) for seconds in SECONDS),
        *zip(OTHERS, SECONDS, strict=False),  # whose proposals do not depend on it
    ],
)
def test_durations_of_any_size(name: str, seconds: float | str | None) -> None:
    study = study_with(name, FLOATS, finished=6)
    for _ in range(3):
        trial = study.ask(FLOATS)
        trial.set_user_attr("seconds", seconds)
        study.tell(trial, value_of(trial.params))
    assert_legal(proposals(study, FLOATS)[0], FLOATS)


@pytest.mark.parametrize("count", [1, 2, 10])
def test_duplicate_observations(name: str, count: int) -> None:
    study = study_with(name, FLOATS, finished=0)
    for i in range(count):
        at = {"x0": 0.5, "x1": 0.5, "x2": 0.5}
        study.add_trial(create_trial(params=at, distributions=FLOATS, value=float(i % 2)))
    params = proposals(study, FLOATS)[0]
    assert_legal(params, FLOATS)
    assert list(params.values()) != [0.5, 0.5, 0.5]


def test_two_hundred_dimensions(name: str) -> None:
    space: Distributions = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(150)}
    space |= {f"c{i}": CategoricalDistribution("ab") for i in range(25)}
    space |= {f"i{i}": IntDistribution(0, 9) for i in range(25)}
    study = study_with(name, space, finished=40)
    first, second = proposals(study, space, 2)
    assert_legal(first, space)
    assert_legal(second, space)
    assert first != second


def test_ranges_that_changed(name: str) -> None:
    study = study_with(name, FLOATS, finished=10)
    for low, high in [(-1.0, 1.0), (5.0, 9.0), (-100.0, 100.0)]:
        moved: Distributions = {key: FloatDistribution(low, high) for key in FLOATS}
        for _ in range(3):
            trial = study.ask(moved)
            assert_legal(trial.params, moved)
            study.tell(trial, value_of(trial.params))


def test_parameters_that_came_and_went(name: str) -> None:
    study = study_with(name, FLOATS, finished=10)
    more = FLOATS | {"new": FloatDistribution(0.0, 1.0)}
    less = {"x0": FLOATS["x0"], "other": IntDistribution(0, 3)}
    for space in (more, less, FLOATS):
        for _ in range(3):
            trial = study.ask(space)
            assert_legal(trial.params, space)
            study.tell(trial, value_of(trial.params))


def test_every_state_of_a_trial(name: str) -> None:
    study = study_with(name, FLOATS, finished=6)
    study.tell(study.ask(FLOATS), state=TrialState.FAIL)
    study.tell(study.ask(), state=TrialState.FAIL)
    half = study.ask()
    half.suggest_float("x0", -2.0, 2.0)
    study.tell(half, state=TrialState.FAIL)
    pruned = study.ask(FLOATS)
    pruned.report(4.0, step=1)
    pruned.report(3.0, step=7)
    study.tell(pruned, state=TrialState.PRUNED)
    study.tell(study.ask(FLOATS), state=TrialState.PRUNED)
    study.ask()
    study.ask().suggest_float("x0", -2.0, 2.0)
    study.enqueue_trial({"x0": 0.25})
    seed_point, params = proposals(study, FLOATS, 2)
    assert seed_point["x0"] == 0.25
    assert_legal(seed_point, FLOATS)
    assert_legal(params, FLOATS)


def test_nothing_but_broken_trials(name: str) -> None:
    study = study_with(name, FLOATS, finished=0)
    asked = []
    for _ in range(8):
        trial = study.ask(FLOATS)
        asked.append(tuple(trial.params.values()))
        study.tell(trial, state=TrialState.FAIL)
    assert len(set(asked)) == 8


def test_nothing_to_choose(name: str) -> None:
    space: Distributions = {"a": IntDistribution(3, 3), "b": CategoricalDistribution(["x"])}
    study = study_with(name, space, finished=5)
    assert study.ask(space).params == {"a": 3, "b": "x"}
    assert study.ask().params == {}


def test_one_variable(name: str) -> None:
    for one in MIXED.values():
        study = study_with(name, {"v": one}, finished=6)
        for params in proposals(study, {"v": one}, 2):
            assert_legal(params, {"v": one})


def test_variables_of_several_elements(name: str) -> None:
    variables = [
        Variable(name="X", kind=Kind.FLOAT, size=2, low=0.0, high=1.0),
        Variable(name="L", kind=Kind.FLOAT, size=2, low=1e-3, high=1.0, log=True),
        Variable(name="units", kind=Kind.INT, size=2, low=1.0, high=64.0, log=True),
        Variable(name="depth", kind=Kind.INT, low=1.0, high=9.0),
        Variable(name="act", kind=Kind.ENUM, size=2, options=("relu", "tanh")),
        Variable(name="only", kind=Kind.ENUM, options=("one",)),
        Variable(name="still", kind=Kind.FLOAT, low=2.0, high=2.0),
    ]
    space = distributions(variables)
    study = study_with(name, space, finished=10)
    asked = proposals(study, space, 4)
    for params in asked:
        assert_legal(params, space)
    assert len({repr(params) for params in asked}) == 4
