"""Constraints in the study, for our commands and for Optuna."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import optuna
import pytest

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.selection import outline_of
from spearmint.config.reader import load_experiment
from spearmint.errors import StudyMismatch
from spearmint.model import Result, ranking
from spearmint.outputs import Constraint
from spearmint.store.opening import open_study
from spearmint.store.sql.aggregates import Aggregates
from spearmint.store.study import Study

CONFIG = """language: PYTHON
name: "mine"
variable { name: "x" type: FLOAT min: 0 max: 1 }
constraint { name: "memory_gb" max: 80 }
constraint { name: "depth" min: 1 max: 4 }
"""
# Objective, memory and depth: trials 1, 3 and 6 are feasible, trial 5 is nearest of the others.
ROWS = [
    (0.5, 80.0, 2.0),
    (-9.0, 160.0, 2.0),
    (0.25, 1.0, 1.0),
    (-8.0, math.inf, 2.0),
    (-7.0, 88.0, 2.0),
    (math.inf, 1.0, 2.0),
    (-6.0, 1.0, 0.5),
]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    (tmp_path / "config.pb").write_text(CONFIG)
    experiment = load_experiment(tmp_path / "config.pb")
    study = open_study(experiment, f"sqlite:///{tmp_path}/trials.db")
    study.use(optuna.samplers.RandomSampler(seed=1))
    for value, memory, depth in ROWS:
        found = {"memory_gb": memory, "depth": depth}
        study.complete(study.ask(), Result(value=value, seconds=1.0, constraints=found))
    return study


@pytest.mark.parametrize("sql", [True, False])
def test_the_best_is_feasible(study: Study, sql: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = study.trials()
    if sql:
        monkeypatch.setattr(Study, "trials", lambda self: pytest.fail("all trials were read"))
    else:
        monkeypatch.setattr(Aggregates, "_sql", None)
    assert [trial.id for trial in study.best(9)] == [3, 1, 6]
    every = [trial.id for trial in study.best(9, feasible=False)]
    assert every == [trial.id for trial in ranking(trials, maximize=False)]
    assert every == [3, 1, 6, 5, 7, 2, 4]
    assert trials[6].excess == {"depth": 0.5}
    assert not trials[1].is_feasible


def test_a_stored_trial_is_the_one_that_complete_returned(study: Study) -> None:
    found = {"memory_gb": 90.0, "depth": 2.0}
    done = study.complete(study.ask(), Result(value=1.0, constraints=found))
    assert study.trials()[-1] == done
    assert done.to_json()["constraints"] == found
    assert done.to_json()["feasible"] is False


def test_optuna_sees_the_constraints(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = optuna.load_study(study_name="mine", storage=study.url).trials
    assert frozen[1].constraints == {"memory_gb": 80.0, "depth (min)": -1.0, "depth (max)": -2.0}
    for sampler in (optuna.samplers.TPESampler(seed=0), GPEIOptChooser(seed=0)):
        study.use(sampler)
        asked = study.ask()
        study.complete(asked, Result(value=1.0, constraints={"memory_gb": 1.0, "depth": 2.0}))
    monkeypatch.setattr(Aggregates, "_sql", None)
    study.complete(study.ask(), Result(value=1.0, constraints={"memory_gb": 81.0, "depth": 2.0}))
    last = optuna.load_study(study_name="mine", storage=study.url).trials[-1]
    assert last.constraints["memory_gb"] == 1.0


def test_a_large_study_selects_feasible_trials(study: Study) -> None:
    """Infeasible trials count as the worst among those that a model leaves out."""
    outline = study._storage.outline(study._study._study_id)
    assert [number for number, v in enumerate(outline.values) if math.isnan(v)] == [1, 3, 4, 6]
    assert len(outline_of(study._study.trials).values) == 7


def test_another_limit_is_another_search(study: Study) -> None:
    other = (Constraint(name="memory_gb", high=96.0),)
    with pytest.raises(StudyMismatch, match=r"memory_gb: stored at most 80\.0; .* at most 96\.0"):
        open_study(replace(study.experiment, constraints=other), study.url)
