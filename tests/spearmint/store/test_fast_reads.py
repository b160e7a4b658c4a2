"""Reading all trials in bulk returns the same as Optuna."""

from __future__ import annotations

import math
import time
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import RDBStorage
from optuna.trial import TrialState, create_trial

from spearmint.store.sql import fast_reads
from spearmint.store.sql.fast_reads import BulkReadStorage

SPACE = {
    "lr": FloatDistribution(1e-5, 1.0, log=True),
    "X[0]": FloatDistribution(-1.0, 1.0),
    "units": IntDistribution(1, 8),
    "act": CategoricalDistribution(("relu", "tanh")),
}
PARAMS = {"lr": 0.01, "X[0]": -0.5, "units": 3, "act": "tanh"}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Return the URL of a database with trials in all states, in two studies."""
    url = f"sqlite:///{tmp_path}/trials.db"
    study = optuna.create_study(storage=url, study_name="a")
    for value in (0.25, math.inf, -math.inf, 1e300):
        study.add_trial(create_trial(params=PARAMS, distributions=SPACE, value=value))
    facts = {"user_attrs": {"seconds": 1.5, "tail": "ä\n"}, "system_attrs": {"fixed": {"lr": 1.0}}}
    reports = {1: 0.5, 0: math.nan, 7: math.inf}
    study.add_trial(
        create_trial(
            state=TrialState.PRUNED,
            params=PARAMS,
            distributions=SPACE,
            intermediate_values=reports,
            **facts,
        )
    )
    study.add_trial(create_trial(state=TrialState.FAIL, **facts))
    study.ask(SPACE)
    study.enqueue_trial({"lr": 0.5})
    other = optuna.create_study(storage=url, study_name="b")
    other.add_trial(create_trial(params=PARAMS, distributions=SPACE, value=9.0))
    return url


def test_every_field_is_the_same(url: str) -> None:
    ours, theirs = (
        optuna.load_study(study_name="a", storage=storage(url)).get_trials()
        for storage in (BulkReadStorage, RDBStorage)
    )
    assert repr(ours) == repr(theirs)
    assert len(ours) == 8
    assert ours[4].intermediate_values[1] == 0.5


def test_optuna_still_calls_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = fast_reads._read
    monkeypatch.setattr(fast_reads, "_read", lambda *a: calls.append(1) or real(*a))
    storage = optuna.storages.get_storage(BulkReadStorage(url))
    study = optuna.load_study(study_name="a", storage=storage)
    assert len(study.get_trials()) == 8
    assert calls, "this release of Optuna does not call _get_trials"


@pytest.mark.parametrize(("named", "above"), [(set(), 5), ({1, 3, 7}, 8), ({2}, 10**6), ({9}, -1)])
def test_some_trials_too(url: str, named: set[int], above: int) -> None:
    ours, plain = BulkReadStorage(url), RDBStorage(url)
    for study_id in (1, 2):
        read = [storage._get_trials(study_id, None, named, above) for storage in (ours, plain)]
        assert [repr(trial) for trial in read[0]] == [repr(trial) for trial in read[1]]


def test_a_view_reads_once_and_knows_its_own_trials(url: str, monkeypatch) -> None:
    calls = []
    real = fast_reads._read
    monkeypatch.setattr(fast_reads, "_read", lambda *a: calls.append(1) or real(*a))
    monkeypatch.setattr(BulkReadStorage, "get_trial", RDBStorage.get_trial)  # not all of the study
    storage = optuna.storages.get_storage(BulkReadStorage(url))
    study = optuna.load_study(study_name="a", storage=storage)
    with fast_reads.one_view(storage):
        before = study.get_trials()
        asked = study.ask(SPACE)
        assert len(calls) == 1
        assert [trial.number for trial in study.get_trials()][-1] == asked.number
    after = study.get_trials()
    assert len(calls) == 2
    assert len(after) >= len(before)
    assert after[asked.number].params == asked.params
    with fast_reads.one_view(optuna.storages.InMemoryStorage()):
        pass


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_times_are_local(url: str, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        test_every_field_is_the_same(url)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_many_running_trials_are_read_in_bulk(tmp_path: Path, monkeypatch) -> None:
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/many.db", study_name="a")
    study.add_trials([create_trial(state=TrialState.RUNNING) for _ in range(7)])
    study.add_trial(create_trial(value=1.0))
    monkeypatch.setattr(fast_reads, "MOST_NAMED", 3)
    monkeypatch.setattr(RDBStorage, "_get_trials", lambda *a: pytest.fail("read by Optuna"))
    storage = BulkReadStorage(f"sqlite:///{tmp_path}/many.db")
    found = storage._get_trials(1, None, set(range(1, 8)), 8)
    assert [trial.number for trial in found] == list(range(7))
    assert [trial.number for trial in storage.read_trials([8, 2])] == [1, 7]
