"""The contract of a chooser: run for each of ours, on every kind of history."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from spearmint.choosers import CHOOSERS, GPEIOptChooser, ModelChooser, chooser_class, make_chooser
from spearmint.choosers.testing import (
    FLOATS,
    MIXED,
    Distributions,
    assert_legal,
    proposals,
    study_with,
    value_of,
)
from spearmint.errors import InputError
from spearmint.gp.fit import fit
from tests.spearmint.choosers.claims import lowest_branin

# CMA-ES moves numbers only.
MODELS_OF_ALL = [
    name
    for name in CHOOSERS
    if issubclass(chooser_class(name), ModelChooser) and name != "CMAChooser"
]


@pytest.fixture(params=list(CHOOSERS))
def name(request) -> str:
    return request.param


# What a proposal may depend on


def in_this_process(finished: int, pending: int) -> dict[str, list[dict[str, Any]]]:
    return {
        name: proposals(study_with(name, MIXED, finished=finished, pending=pending), MIXED, 2)
        for name in CHOOSERS
    }


@pytest.mark.parametrize(("finished", "pending"), [(0, 0), (12, 0), (12, 3)])
def test_same_history_and_seed_same_proposal(finished: int, pending: int) -> None:
    assert in_this_process(finished, pending) == in_this_process(finished, pending)


def test_same_history_and_seed_same_proposal_in_another_process() -> None:
    code = (
        "import json, runpy, sys, optuna\n"
        "optuna.logging.set_verbosity(optuna.logging.ERROR)\n"
        "module = runpy.run_path(sys.argv[1])\n"
        "print(json.dumps([module['in_this_process'](*case) for case in [(0, 0), (12, 3)]]))\n"
    )
    argv = [sys.executable, "-c", code, str(Path(__file__))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120)
    assert json.loads(done.stdout) == [in_this_process(0, 0), in_this_process(12, 3)]


def test_a_chooser_asked_before_proposes_like_a_new_one(name: str) -> None:
    used, fresh = study_with(name, MIXED), study_with(name, MIXED)
    fresh_proposals = proposals(fresh, MIXED, 2)
    proposals(study_with(name, FLOATS), FLOATS, 3)
    other = study_with(name, FLOATS)
    sampler, other.sampler = used.sampler, used.sampler
    proposals(other, FLOATS, 2)
    assert used.sampler is sampler
    assert proposals(used, MIXED, 2) == fresh_proposals


def test_the_storage_does_not_matter(name: str, tmp_path: Path) -> None:
    stored = study_with(name, MIXED, pending=2, storage=f"sqlite:///{tmp_path / 'a b.db'}")
    in_memory = study_with(name, MIXED, pending=2)
    assert proposals(stored, MIXED, 2) == proposals(in_memory, MIXED, 2)


@pytest.mark.parametrize("finished", [0, 12])
def test_another_seed_another_proposal(name: str, finished: int) -> None:
    seeds = [0, 1, -1, 2**70]
    points = [proposals(study_with(name, FLOATS, finished=finished, seed=s), FLOATS) for s in seeds]
    assert all(a != b for i, a in enumerate(points) for b in points[:i])


def test_without_a_seed_two_choosers_differ(name: str) -> None:
    kinds = [chooser_class(name)(), chooser_class(name)()]
    points = [optuna.create_study(sampler=kind).ask(FLOATS).params for kind in kinds]
    assert points[0] != points[1]


@pytest.mark.parametrize("pending", [0, 2])
def test_maximising_is_minimising_the_negative(name: str, pending: int) -> None:
    low = study_with(name, MIXED, pending=pending)
    high = study_with(name, MIXED, pending=pending, maximize=True, value=lambda p: -value_of(p))
    assert proposals(low, MIXED, 2) == proposals(high, MIXED, 2)


def test_brackets_of_hyperband_do_not_matter(name: str) -> None:
    plain, bracketed = study_with(name, FLOATS), study_with(name, FLOATS)
    bracketed.pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    for study in (plain, bracketed):
        first = study.ask(FLOATS)
        first.report(1.0, step=1)
        first.should_prune()  # with its first question the pruner makes its brackets
    assert proposals(bracketed, FLOATS, 4) == proposals(plain, FLOATS, 4)


# What a proposal is


@pytest.mark.parametrize("finished", [0, 1, 12])
def test_proposals_are_legal_and_distinct(name: str, finished: int) -> None:
    study = study_with(name, MIXED, finished=finished)
    asked = proposals(study, MIXED, 6)
    for params in asked:
        assert_legal(params, MIXED)
    told = [t.params for t in study.get_trials(states=[TrialState.COMPLETE])]
    everything = [repr(p) for p in asked + told]
    assert len(set(everything)) == len(everything)


numbers = st.one_of(
    st.builds(
        lambda a, b: FloatDistribution(min(a, b), max(a, b)),
        st.floats(-1e308, 1e308),
        st.floats(-1e308, 1e308),
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


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
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


# Use from Optuna


def test_a_chooser_alone(name: str) -> None:
    study = optuna.create_study(sampler=make_chooser(name, {}, seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=6)
    assert len({trial.params["x"] for trial in study.trials}) == 6


def test_the_default_chooser_with_arguments() -> None:
    study = optuna.create_study(sampler=GPEIOptChooser(seed=0, noiseless=True))
    study.optimize(lambda trial: trial.suggest_float("x", -1.0, 1.0) ** 2, n_trials=12)
    assert study.best_value < 1e-4


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_optimize_with_parameters_named_as_it_runs(name: str, n_jobs: int) -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        if trial.suggest_categorical("kind", ["plain", "deep"]) == "deep":
            return x * x + trial.suggest_int("depth", 1, 5)
        return abs(x)

    study = optuna.create_study(sampler=make_chooser(name, {}, seed=3))
    study.optimize(objective, n_trials=10, n_jobs=n_jobs)
    assert len(study.trials) == 10
    if n_jobs == 1:
        # Threads may both propose before either has stored its parameters.
        assert len({repr(t.params) for t in study.trials}) == 10


def test_two_objectives_are_refused(name: str) -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.sampler = make_chooser(name, {}, seed=0)
    with pytest.raises(InputError, match="one objective, the study has 2"):
        study.ask(FLOATS)


def test_a_model_beats_chance() -> None:
    def best_of(name: str) -> float:
        study = study_with(name, FLOATS, finished=0, seed=5)
        for _ in range(25):
            trial = study.ask(FLOATS)
            study.tell(trial, float(np.sum((np.array(list(trial.params.values())) - 0.3) ** 2)))
        return study.best_value

    assert best_of("GPEIOptChooser") < 0.01 * best_of("RandomChooser")


def test_branin_in_forty_trials() -> None:
    """Best value below 0.41; the minimum is 0.3979."""
    assert lowest_branin(GPEIOptChooser(seed=0), 40) < 0.41
