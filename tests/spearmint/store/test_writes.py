"""New and complete trials are stored as by Optuna, in fewer statements."""

from __future__ import annotations

import math
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState as OptunaState

from spearmint.errors import StorageError
from spearmint.model import Result
from spearmint.store.study import Study
from tests.spearmint.store.studies import opened, point, stored


def test_new_and_complete_trials_are_stored_as_by_optuna(study: Study, url: str) -> None:
    for value in (0.5, math.inf, -math.inf, 1e300):
        ours = study.add_running(point())
        theirs = study._study.ask(study._distributions)
        for name, given in point().items():
            internal = study._distributions[name].to_internal_repr(given)
            assert ours.params == {"X": (0.5, 0.25), "act": ("tanh",)}
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
                connection.execute(
                    "UPDATE trial_params SET param_value = ? WHERE param_name = ? AND trial_id = ?",
                    (internal, name, theirs._trial_id),
                )
                connection.commit()
        assert study.complete(ours, Result(value=value, seconds=1.5)).value == value
        study._storage.set_trial_user_attr(theirs._trial_id, "seconds", 1.5)
        study._study.tell(theirs.number, value)
    trials = stored(url)
    assert [trial.number for trial in trials] == list(range(8))
    for ours, theirs in zip(trials[::2], trials[1::2], strict=True):
        for field in ("params", "distributions", "values", "state", "user_attrs", "system_attrs"):
            assert getattr(ours, field) == getattr(theirs, field), field
        assert abs((ours.datetime_start - theirs.datetime_start).total_seconds()) < 600
        assert abs((ours.datetime_complete - theirs.datetime_complete).total_seconds()) < 600


def test_an_ended_trial_is_not_completed_again(study: Study, url: str) -> None:
    trial = study.add_running(point())
    study.prune(trial, 3.0)
    with pytest.raises(StorageError, match="does not run"):
        study.complete(trial, Result(value=1.0, seconds=2.0))
    (left,) = stored(url)
    assert (left.state, left.user_attrs, left.values) == (
        OptunaState.PRUNED,
        {"seconds": 3.0},
        None,
    )


def test_seconds_of_a_killed_controller_are_replaced(study: Study, url: str) -> None:
    trial = study.add_running(point())
    study._storage.set_trial_user_attr(study._storage_id(trial), "seconds", 9.0)
    study.complete(trial, Result(value=1.0, seconds=2.0))
    assert stored(url)[0].user_attrs == {"seconds": 2.0}


def test_a_sampler_that_follows_results_is_told(study: Study) -> None:
    told = []

    class Following(optuna.samplers.RandomSampler):
        def after_trial(self, study, trial, state, values):
            told.append((trial.number, values))

    study.use(Following())
    study.complete(study.ask(), Result(value=1.0))
    assert told == [(0, [1.0])]


def test_a_round_that_fails_stores_no_half_of_a_trial(study: Study, url: str) -> None:
    trial = study.add_running(point())
    engine = study._sql.engine
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE TRIGGER full BEFORE INSERT ON trial_values "
            "BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END"
        )
    with pytest.raises(StorageError, match="Free disk space"):
        study.complete(trial, Result(value=1.0))
    assert stored(url)[0].state is OptunaState.RUNNING


def test_numbers_stay_unique_between_our_trials_and_those_of_optuna(
    study: Study, url: str, tmp_path: Path
) -> None:
    other = opened(tmp_path, url)
    plain = optuna.load_study(study_name="mine", storage=RDBStorage(url))
    numbers = []
    for _ in range(3):
        numbers += [study.add_running(point()).id, other.add_running(point()).id]
        numbers.append(plain.ask().number + 1)
    assert numbers == list(range(1, 10))


def test_two_processes_that_store_at_once_use_each_number_once(
    study: Study, url: str, tmp_path: Path
) -> None:
    others = [opened(tmp_path, url) for _ in range(2)]

    def add(other: Study) -> list[int]:
        return [other.add_running(point()).id for _ in range(20)]

    with ThreadPoolExecutor(2) as pool:
        numbers = [number for found in pool.map(add, others) for number in found]
    assert sorted(numbers) == list(range(1, 41))
    assert len(study.running()) == 40


def test_a_killed_process_leaves_whole_trials(study: Study, url: str, tmp_path: Path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from spearmint.model import Result\n"
        "from tests.spearmint.store.studies import opened, point\n"
        "study = opened(Path(sys.argv[1]), sys.argv[2])\n"
        "while True:\n"
        "    study.complete(study.add_running(point()), Result(value=1.0, seconds=1.0))\n"
        "    print('stored', flush=True)\n"
    )
    place = tmp_path / "other"
    place.mkdir()
    argv = [sys.executable, "-c", code, str(place), url]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(5):
            assert process.stdout.readline() == "stored\n"
        process.kill()
        told = 5 + len(process.stdout.readlines())
    trials = stored(url)
    assert all(trial.params == point() for trial in trials)
    complete = [trial for trial in trials if trial.state is OptunaState.COMPLETE]
    assert told <= len(complete) <= told + 1
    assert len(trials) <= len(complete) + 1
    assert all(t.values == [1.0] and t.user_attrs == {"seconds": 1.0} for t in complete)


@pytest.mark.parametrize("end", ["broken", "pruned"])
def test_an_end_that_fails_stores_no_part_of_it(
    study: Study, url: str, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = study.add_running(point())

    def fail(*words: object, **more: object) -> None:
        raise optuna.exceptions.StorageInternalError("database or disk is full")

    monkeypatch.setattr(RDBStorage, "set_trial_state_values", fail)
    ends = {
        "broken": lambda: study.break_(trial, Result(value=None, reason="why"), "tail"),
        "pruned": lambda: study.prune(trial, 3.0),
    }
    with pytest.raises(StorageError, match="Free disk space"):
        ends[end]()
    (left,) = stored(url)
    assert (left.state, left.user_attrs) == (OptunaState.RUNNING, {})


def test_a_transaction_inside_another_is_part_of_it(study: Study, url: str, tmp_path: Path) -> None:
    reader = opened(tmp_path, url)
    with study.one_transaction():
        first = study.add_running(point())
        with pytest.raises(ValueError, match="no value"), study.one_transaction():  # noqa: PT012
            study.break_(first, Result(value=None, reason="why"), "tail")
            raise ValueError("no value")
        second = study.add_running(point(0.25))
        assert not reader.running()
    assert reader.running() == [second]
    assert reader.find(first.id).reason == "why"


@pytest.mark.parametrize("writes_before", [False, True])
def test_a_part_of_a_transaction_is_undone_alone(
    study: Study, url: str, tmp_path: Path, writes_before: bool
) -> None:
    reader = opened(tmp_path, url)
    with study.one_transaction():
        first = study.add_running(point()) if writes_before else None
        with pytest.raises(ValueError, match="late"), study.one_transaction(all_or_nothing=True):  # noqa: PT012
            study.add_running(point(0.75))
            if first is not None:
                study.report(first, {1: 9.0})
            raise ValueError("late")
        with study.one_transaction(all_or_nothing=True):
            second = study.add_running(point(0.25))
        assert not reader.running(), "the part was stored before the end of the transaction"
    expected = [second] if first is None else [first, second]
    assert reader.running() == study.running() == expected
    assert [trial.params for trial in study.trials()] == [trial.params for trial in expected]
    assert not reader.running()[0].reports
