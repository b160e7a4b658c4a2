"""Paused trials in the database: states, counts, the best, also of other storages."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.storages import InMemoryStorage

from spearmint.config.reader import load_experiment
from spearmint.model import Result, Trial, TrialState
from spearmint.store.opening import open_study
from spearmint.store.study import Study
from tests.spearmint.store.studies import CONFIG, opened, point

RUNGS = CONFIG + 'fidelity { name: "epochs" min: 1 max: 9 reduction_factor: 3 }\n'


@pytest.fixture(params=["sqlite", "memory"])
def paused(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> Study:
    """Return a study with a complete, a resumed, two paused and a new running trial."""
    if request.param == "memory":
        storage = InMemoryStorage()
        monkeypatch.setattr("spearmint.store.opening.open_storage", lambda url: storage)
    study = opened(tmp_path, f"sqlite:///{tmp_path}/trials.db", RUNGS)
    first, second, third, fourth, _ = (study.add_running(point(x / 9)) for x in range(5))
    first = climb(study, climb(study, first, 0.5), 0.4)
    study.complete(first, Result(value=0.3, seconds=9.0))
    climb(study, second, 0.7)
    study.pause(third, Result(value=0.8, seconds=1.0, reports={1: 0.8}))
    study.pause(fourth, Result(value=0.6, seconds=1.0))
    return study


def climb(study: Study, trial: Trial, value: float) -> Trial:
    return study.resume_paused(study.pause(trial, Result(value=value, seconds=2.0)))


def test_paused_trials_are_a_state_of_their_own(paused: Study) -> None:
    states = [trial.state.value for trial in paused.trials()]
    assert states == ["complete", "running", "paused", "paused", "running"]
    counts = {str(state): n for state, n in paused.counts().items() if n}
    assert counts == {"complete": 1, "running": 2, "paused": 2}
    assert [t.id for t in paused.last(TrialState.PAUSED)] == [3, 4]
    assert [t.id for t in paused.last(TrialState.RUNNING)] == [2, 5]
    assert [t.id for t in paused.running()] == [2, 5]
    assert paused.find_running(3) is None
    assert paused.finished_after(1) == 2
    assert paused.seconds() == 9.0 + 2.0 + 1.0 + 1.0


def test_a_goal_is_stored_with_the_pause(paused: Study) -> None:
    trial = paused.running()[-1]
    paused.pause(trial, Result(value=0.9, seconds=1.0), goal=3)
    assert paused.climbers()[trial.id].goal == 3
    found = paused.find(trial.id)
    assert found is not None
    assert found.goal == 3
    resumed = paused.pause(paused.resume_paused(found), Result(value=0.8, seconds=2.0), found.goal)
    assert (resumed.goal, paused.climbers()[trial.id].goal) == (3, 3)
    assert paused.climbers()[3].goal == 0


def test_a_trial_keeps_its_values_at_rungs(paused: Study) -> None:
    one, two, three, *_ = paused.trials()
    assert (one.rungs, one.value) == ((0.5, 0.4), 0.3)
    assert (two.rungs, two.seconds, two.earlier_s) == ((0.7,), None, 2.0)
    assert (three.rungs, three.seconds, three.reports) == ((0.8,), 1.0, {1: 0.8})
    climbers = paused.climbers()
    assert {n: each.losses for n, each in climbers.items()} == {
        1: (0.5, 0.4, 0.3),
        2: (0.7,),
        3: (0.8,),
        4: (0.6,),
    }
    assert [n for n, each in climbers.items() if each.is_paused] == [3, 4]


def test_each_part_has_another_key(paused: Study) -> None:
    three = paused.find(3)
    assert three is not None
    before = Trial(id=3, state=TrialState.RUNNING, params=three.params)
    assert paused.key(three) != paused.key(before), "the result of a part is not that of the next"
    assert paused.key(paused.resume_paused(three)) == paused.key(three)


def test_the_best_of_the_highest_rung_is_recommended_until_a_trial_is_complete(
    tmp_path: Path,
) -> None:
    study = opened(tmp_path, f"sqlite:///{tmp_path}/trials.db", RUNGS)
    assert study.recommended() is None
    values = {0.7: (0.5,), 0.8: (0.9, 0.45), 0.9: (0.8, 0.44)}
    for x, rungs in values.items():
        trial = study.add_running(point(x))
        for value in rungs:
            trial = study.pause(trial, Result(value=value, seconds=1.0))
    found = study.recommended()
    assert found is not None
    assert (found.trial.id, found.trial.value) == (3, 0.44)
    assert [trial.id for trial in study.at_highest_rung(None)] == [3, 2]
    trial = study.resume_paused(study.find(2))
    study.complete(trial, Result(value=9.0, seconds=2.0))
    assert study.recommended().trial.id == 2, "the only one of the highest rung"


@pytest.mark.parametrize("paused", ["sqlite"], indirect=True)
def test_optuna_reads_paused_trials_as_running(paused: Study, tmp_path: Path) -> None:
    again = open_study(load_experiment(tmp_path / "config.pb"), paused.url)
    assert again.counts() == paused.counts()
    stored = optuna.load_study(study_name="mine", storage=paused.url)
    assert [t.state.name for t in stored.trials].count("RUNNING") == 4
