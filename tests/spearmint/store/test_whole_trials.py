"""Trials that lack parameters are left out, however many there are."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState as OptunaState

from spearmint.choosers import make_chooser
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


def test_what_a_rolled_back_transaction_stored_is_forgotten(
    study: Study, url: str, tmp_path: Path
) -> None:
    running, other = study.add_running(point()), opened(tmp_path, url)
    with suppress(KeyboardInterrupt), study.one_transaction(all_or_nothing=True):
        study.break_(running, Result(value=None, reason="no value"), tail="")
        study.complete(study.add_running(point()), Result(value=1.0))
        study._study.tell(half(study), 0.5)
        check(study)
        raise KeyboardInterrupt
    check(study)
    assert study.find(2) is None
    # Other trials get their numbers and ids.
    other.complete(other.add_running(point()), Result(value=3.0))
    other._study.tell(half(other), 2.0)
    other.complete(other.add_running(point()), Result(value=4.0))
    check(study, other)
    assert [trial.value for trial in study.best(None)] == [3.0, 4.0]


def test_points_whose_storage_was_interrupted_are_no_trials(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, begun = study.add_running, []

    def interrupted(some) -> None:
        begun.append(add(some))
        if len(begun) == 2:
            raise KeyboardInterrupt

    study.use(make_chooser("RandomChooser", {}, seed=1))
    monkeypatch.setattr(study, "add_running", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.ask_many(3)
    monkeypatch.setattr(study, "add_running", add)
    assert [trial.id for trial in begun] == [1, 2]
    assert study.trials() == []
    assert study.find(1) is None
    assert [trial.id for trial in study.ask_many(3)] == [1, 2, 3]


def test_a_trial_that_ends_between_two_statements_is_not_read_as_whole(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, left = opened(tmp_path, url), half(study)
    study.break_(study.add_running(point()), Result(value=None, reason="no value"), tail="")
    whole_rows = study._whole_rows

    def and_another_controller_starts(state: OptunaState | None = None):
        found = whole_rows(state)
        other.abandon_unproposed()
        return found

    monkeypatch.setattr(study, "_whole_rows", and_another_controller_starts)
    assert [trial.id for trial in study.last(TrialState.BROKEN)] == [left.number + 2]
