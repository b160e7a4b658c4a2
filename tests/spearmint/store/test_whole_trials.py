"""Trials that lack parameters are left out, however many there are."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState as OptunaState

from spearmint.model import Result, TrialState
from spearmint.store.sql import whole
from spearmint.store.study import Study
from tests.spearmint.store.studies import opened, point


def half(study: Study) -> optuna.Trial:
    """Return a new running trial with one of three parameters, as a killed controller leaves it."""
    trial = study._study.ask()
    trial.suggest_float("X[0]", 0.0, 1.0)
    return trial


def check(*studies: Study) -> None:
    """Compare the counts of ``studies``, which have asked before, with reading all trials."""
    for study in studies:
        states = [trial.state for trial in study.trials()]
        assert study.counts() == {state: states.count(state) for state in TrialState}
        assert study.states() == {trial.id: trial.state for trial in study.trials()}
        assert study.best(None) == [
            t for t in sorted(study.trials(), key=lambda t: (t.value or 0.0, t.id)) if t.value
        ]


@pytest.mark.parametrize("most", [500, 1])
def test_trials_without_all_parameters_do_not_count(
    study: Study, url: str, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "MOST_NAMED", most)
    other = opened(tmp_path, url)
    check(study, other)
    early = half(study)
    running = [study.add_running(point()) for _ in range(4)]
    check(study, other)
    late, ended = half(study), half(study)
    study.complete(running[0], Result(value=2.0))
    study._study.tell(ended, state=OptunaState.FAIL)  # new and ended between two counts
    check(study, other)
    study._study.tell(early, state=OptunaState.FAIL)  # it ran at the last count
    study._study.tell(late, 1.0)
    study.complete(running[2], Result(value=3.0))
    check(study, other)
    check(opened(tmp_path, url))
    assert study.counts()[TrialState.COMPLETE] == 2
    assert study.counts()[TrialState.BROKEN] == 0
    assert study.counts()[TrialState.RUNNING] == 2


def test_ended_trials_are_checked_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    study.complete(study.add_running(point()), Result(value=1.0))
    study.counts()
    monkeypatch.setattr(
        whole.WholeTrials, "_find_lacking", lambda *words: pytest.fail("trials were searched")
    )
    study.add_running(point())
    assert study.counts()[TrialState.RUNNING] == 1
    assert len(study.best()) == 1
    assert study.seconds() == 0.0
