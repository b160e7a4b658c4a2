"""Counts and best trials by SQL are those of reading all trials."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from spearmint.config.reader import load_experiment
from spearmint.model import Result, TrialState, ranking
from spearmint.store.opening import open_study
from spearmint.store.sql.aggregates import Aggregates
from spearmint.store.study import Study

CONFIG = """language: PYTHON
name: "mine"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""


@pytest.fixture(params=[False, True], ids=["minimize", "maximize"])
def study(tmp_path: Path, request: pytest.FixtureRequest) -> Study:
    (tmp_path / "config.pb").write_text(CONFIG)
    experiment = replace(load_experiment(tmp_path / "config.pb"), maximize=request.param)
    study = open_study(experiment, f"sqlite:///{tmp_path}/trials.db")
    study.use(optuna.samplers.RandomSampler(seed=1))
    for value in (0.5, math.inf, -0.25, 0.5, -math.inf, -0.25, 1e300):
        study.complete(study.ask(), Result(value=value, seconds=0.125))
    for seconds in (None, 1.5):
        study.break_(study.ask(), Result(value=None, reason="why", seconds=seconds), "tail")
    study.prune(study.ask(), 2.0)
    study.ask_many(3)
    study.enqueue({"act": "relu"})
    half = study._study.ask()
    half.suggest_float("X[0]", 0.0, 1.0)
    other = open_study(replace(experiment, name="other"), study.url)
    other.use(optuna.samplers.RandomSampler(seed=1))
    other.complete(other.ask(), Result(value=-9.0, seconds=100.0))
    return study


@pytest.mark.parametrize("sql", [True, False])
def test_the_answers_are_those_of_all_trials(
    study: Study, sql: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    trials = study.trials()
    if sql:
        monkeypatch.setattr(Study, "trials", lambda self: pytest.fail("all trials were read"))
    else:
        monkeypatch.setattr(Aggregates, "_sql", None)
    states = [trial.state for trial in trials]
    assert study.counts() == {state: states.count(state) for state in TrialState}
    assert study.counts()[TrialState.RUNNING] == 3
    assert study.seconds() == sum(trial.seconds or 0.0 for trial in trials)
    ranked = ranking(trials, maximize=study.experiment.maximize)
    for most in (0, 1, 3, 100):
        assert study.best(most) == ranked[:most]
    for state in TrialState:
        found = [trial for trial in trials if trial.state is state]
        assert study.last(state) == found
        assert study.last(state, 1) == found[-1:]
        assert study.last(state, 0) == []
