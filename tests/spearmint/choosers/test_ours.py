"""Built-in choosers beyond the contract: any space, small spaces, many trials, quality."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.choosers import CHOOSERS, GPEIOptChooser, ModelChooser, chooser_class, make_chooser
from spearmint.choosers.testing import (
    FLOATS,
    Distributions,
    assert_legal,
    proposals,
    study_with,
    value_of,
)
from spearmint.gp.fit import fit
from spearmint.model import Kind, Variable
from spearmint.store.distributions import distributions
from tests.spearmint.choosers.claims import lowest_branin

# CMA-ES only adapts numeric parameters.
MODELS_OF_ALL = [
    name
    for name in CHOOSERS
    if issubclass(chooser_class(name), ModelChooser) and name != "CMAChooser"
]

numbers = st.one_of(
    st.builds(
        lambda a, b: FloatDistribution(min(a, b), max(a, b)),
        st.floats(-8e307, 8e307),  # numpy draws from no wider range
        st.floats(-8e307, 8e307),  # numpy draws from no wider range
    ),
    st.builds(
        lambda a, b: FloatDistribution(a, a * b, log=True), st.floats(1e-9, 1e9), st.floats(1, 1e9)
    ),
    st.builds(
        lambda a, k, s: FloatDistribution(a, round(a + k * s, 6), step=s),
        st.integers(-100, 100),
        st.integers(0, 40),
        st.sampled_from([0.125, 0.25, 3.0]),
    ),
    st.builds(
        lambda a, k, s: IntDistribution(a, a + k * s, step=s),
        st.integers(-(10**6), 10**6),
        st.integers(0, 40),
        st.integers(1, 5),
    ),
    st.builds(
        lambda a, k: IntDistribution(a, a + k, log=True),
        st.integers(1, 10**4),
        st.integers(0, 10**9),
    ),
    st.builds(
        lambda a, k: IntDistribution(a, a + k), st.integers(-(2**51), 0), st.integers(0, 2**52)
    ),
)
choices = st.builds(
    CategoricalDistribution,
    st.lists(st.sampled_from(["a", "b", 1, 2.5, None]), min_size=1, unique=True),
)


@pytest.mark.parametrize("name", list(CHOOSERS))
@settings(max_examples=10, deadline=None)
@given(space=st.dictionaries(st.sampled_from("pqrst"), st.one_of(numbers, choices), min_size=1))
def test_proposals_are_legal_in_any_space(name: str, space: Distributions) -> None:
    study = study_with(name, space, finished=7, pending=1)
    for params in proposals(study, space, 2):
        assert_legal(params, space)


@pytest.mark.parametrize("name", MODELS_OF_ALL)
def test_a_small_space_is_searched_whole_before_anything_comes_twice(name: str) -> None:
    space: Distributions = {"a": IntDistribution(1, 4), "b": CategoricalDistribution("xyz")}
    study = optuna.create_study(sampler=make_chooser(name, {}, seed=0))
    seen = set()
    for _ in range(12):
        trial = study.ask(space)
        seen.add((trial.params["a"], trial.params["b"]))
        study.tell(trial, value_of(trial.params))
    assert len(seen) == 12
    assert_legal(study.ask(space).params, space)


@pytest.mark.parametrize(
    ("name", "limit", "most"),
    [
        ("GPEIperSecChooser", "gp_ei_per_sec._MOST_DURATIONS", 20),
        ("GPConstrainedEIChooser", "gp_constrained_ei._MOST_VALUES", 20),
        ("GPConstrainedEIChooser", "gp_constrained_ei._MOST_LABELS", 40),
    ],
)
def test_a_second_model_sees_a_share_of_many_trials(
    name: str, limit: str, most: int, monkeypatch
) -> None:
    seen = []

    def counted(space, points, *others):
        seen.append(len(points))
        return fit(space, points, *others)

    monkeypatch.setattr("spearmint.gp.fit.fit", counted)
    monkeypatch.setattr(f"spearmint.choosers.{limit}", most)
    study = study_with(
        name, FLOATS, finished=80, value=lambda p: math.inf if p["x0"] > 0 else p["x1"]
    )
    first, second = proposals(study, FLOATS, 2)
    assert_legal(first, FLOATS)
    assert first != second
    assert most in seen


def test_the_default_chooser_with_arguments() -> None:
    study = optuna.create_study(sampler=GPEIOptChooser(seed=0, noiseless=True))
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=12)
    assert study.best_value < 1e-4


def test_a_model_beats_chance() -> None:
    def best_of(name: str) -> float:
        study = study_with(name, FLOATS, finished=0, seed=5)
        for _ in range(25):
            trial = study.ask(FLOATS)
            study.tell(trial, float(np.sum((np.array(list(trial.params.values())) - 0.3) ** 2)))
        return study.best_value

    assert best_of("GPEIOptChooser") < 0.01 * best_of("RandomChooser")


def test_branin_in_forty_trials() -> None:
    """The best value is below 0.41; the minimum is 0.3979."""
    assert lowest_branin(GPEIOptChooser(seed=0), 40) < 0.41


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan, 1e-300, 1e300, None, "long"])
def test_durations_of_any_size(seconds: float | str | None) -> None:
    study = study_with("GPEIperSecChooser", FLOATS, finished=6)
    for _ in range(3):
        trial = study.ask(FLOATS)
        trial.set_user_attr("seconds", seconds)
        study.tell(trial, value_of(trial.params))
    assert_legal(proposals(study, FLOATS)[0], FLOATS)


@pytest.mark.parametrize("name", list(CHOOSERS))
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
