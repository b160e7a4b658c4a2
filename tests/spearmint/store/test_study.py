from __future__ import annotations

import dataclasses
import math
import re
from contextlib import suppress
from pathlib import Path

import optuna
import pytest
from optuna.samplers import RandomSampler

from spearmint.choosers import make_chooser
from spearmint.errors import DriverUnreachable, InputError, StorageError, StudyMismatch
from spearmint.model import (
    Experiment,
    Kind,
    Language,
    Result,
    TrialState,
    Variable,
    best_trial,
    ranking,
)
from spearmint.store.mounts import is_on_network
from spearmint.store.opening import open_study
from spearmint.store.sql.sqlite import sqlite_url
from spearmint.store.study import Study

LR = Variable(name="lr", kind=Kind.FLOAT, low=1e-4, high=1, log=True)
UNITS = Variable(name="units", kind=Kind.INT, size=2, low=1, high=64)
ACT = Variable(name="act", kind=Kind.ENUM, options=("relu", "tanh"))


def experiment(path: Path, **changes: object) -> Experiment:
    base = Experiment(
        path=path / "config.pb", name="net", language=Language.PYTHON, variables=(LR, UNITS, ACT)
    )
    return dataclasses.replace(base, **changes)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return sqlite_url(tmp_path / "a dir's.db")


def opened(path: Path, url: str, **changes: object) -> Study:
    study = open_study(experiment(path, **changes), url)
    study.use(RandomSampler(seed=0))
    return study


def test_a_trial_keeps_vectors_and_types(tmp_path: Path, url: str) -> None:
    trial = opened(tmp_path, url).ask()
    assert trial.id == 1
    assert 1e-4 <= trial.params["lr"][0] <= 1
    assert len(trial.params["units"]) == 2
    assert all(isinstance(value, int) for value in trial.params["units"])
    assert trial.params["act"][0] in ("relu", "tanh")
    assert opened(tmp_path, url).running() == [trial]


def test_what_is_stored_is_what_was_returned(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    result = Result(value=0.5, seconds=2.0, reports={1: 0.75, 2: 0.5})
    done = study.complete(study.ask(), result)
    broken = study.break_(study.ask(), Result(value=None, reason="why", seconds=1.0), "tail")
    waiting = study.add_loss(study.ask())
    assert waiting.lost == 1
    assert opened(tmp_path, url).trials() == [done, broken, waiting]
    assert (done.state, broken.state) == (TrialState.COMPLETE, TrialState.BROKEN)


def test_an_infinite_value_is_stored(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    study.complete(study.ask(), Result(value=float("inf")))
    assert opened(tmp_path, url).trials()[0].value == float("inf")


def test_long_curves_are_thinned_to_their_end(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    reports = {step: 1.0 / (step + 1) for step in range(1001)}
    study.complete(study.ask(), Result(value=0.5, reports=reports))
    stored = opened(tmp_path, url).trials()[0].reports
    assert len(stored) <= 200
    assert stored[1000] == reports[1000]
    assert stored.items() <= reports.items()


def test_seed_points_come_first_and_once(tmp_path: Path, url: str) -> None:
    seeds = ({"lr": (0.5,), "units": (1, 2), "act": ("tanh",)}, {"lr": (0.25,)})
    for _ in range(2):
        study = opened(tmp_path, url, seed_points=seeds)
        study.enqueue_seed_points()
    first, second, third = study.ask(), study.ask(), study.ask()
    assert first.params == seeds[0]
    assert second.params["lr"] == (0.25,)
    assert third.params["lr"] not in [(0.5,), (0.25,)]


def test_other_variables_are_shown(tmp_path: Path, url: str) -> None:
    opened(tmp_path, url)
    wider = dataclasses.replace(LR, high=10.0)
    with pytest.raises(StudyMismatch) as caught:
        opened(tmp_path, url, variables=(wider, ACT), maximize=True)
    text = str(caught.value)
    assert re.search(r"lr: .*FLOAT from 0\.0001 to 1 \(log\).* 1 FLOAT from 0\.0001 to 10", text)
    assert re.search(r"units: .*2 INT from 1 to 64.* nothing", text)
    assert re.search(r"\(direction\): .*minimize.* maximize", text)
    assert "spearmint cleanup" in text


def test_a_proposal_cut_by_a_kill_is_ended_and_hidden(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    study.ask()
    half = optuna.load_study(study_name="net", storage=url).ask()
    half.suggest_float("lr", 1e-4, 1, log=True)
    again = opened(tmp_path, url)
    again.abandon_unproposed()
    assert [trial.id for trial in again.trials()] == [1]
    assert again.ask().id == 3


def test_a_seed_point_cut_by_a_kill_is_proposed_again(tmp_path: Path, url: str) -> None:
    seeds = ({"lr": (0.5,), "units": (1, 2), "act": ("tanh",)},)
    study = opened(tmp_path, url, seed_points=seeds)
    study.enqueue_seed_points()
    half = optuna.load_study(study_name="net", storage=url).ask()
    half.suggest_float("lr", 1e-4, 1, log=True)
    again = opened(tmp_path, url, seed_points=seeds)
    again.abandon_unproposed()
    again.enqueue_seed_points()
    assert again.ask().params == seeds[0]
    assert again.ask().params != seeds[0]


def test_a_key_is_of_one_study_number_and_point(tmp_path: Path, url: str) -> None:
    study, other = opened(tmp_path, url), opened(tmp_path, sqlite_url(tmp_path / "other.db"))
    trial = study.ask()
    assert study.key(trial) == opened(tmp_path, url).key(study.running()[0])
    assert study.key(trial) != other.key(trial)
    assert study.key(trial) != study.key(dataclasses.replace(trial, id=2))
    moved = dataclasses.replace(trial, params={**trial.params, "lr": (0.5,)})
    assert study.key(trial) != study.key(moved)


def test_a_sampler_that_cannot_is_named(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    study.use(make_chooser("BruteForceSampler", {}, seed=0))
    with pytest.raises(InputError, match=r"\bBruteForceSampler\b"):
        study.ask()


def test_a_sampler_that_has_proposed_every_point_repeats_some(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url, variables=(dataclasses.replace(UNITS, size=1, high=3),))
    study.use(make_chooser("BruteForceSampler", {}, seed=0))
    for _ in range(4):
        study.complete(study.ask(), Result(value=1.0))
    study.break_(study.ask(), Result(value=None, reason="no"), "")
    points = [trial.params["units"] for trial in study.trials()]
    assert sorted(set(points)) == [(1,), (2,), (3,)]


def test_a_broken_database_is_an_error_in_words(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("this is not a database, but has the length of a header " * 20)
    with pytest.raises(StorageError, match="file is not a database"):
        open_study(experiment(tmp_path), sqlite_url(path))


@pytest.mark.parametrize("bad", ["nonsense", "oracle9://x/y"])
def test_a_storage_that_does_not_exist(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InputError, match=r"sqlite:////path/to/file\.db"):
        open_study(experiment(tmp_path), bad)


def test_the_best_of_minimum_and_maximum(tmp_path: Path, url: str) -> None:
    study = opened(tmp_path, url)
    for value in (0.5, 0.25, 0.25, float("inf"), float("-inf")):
        study.complete(study.ask(), Result(value=value))
    trials = study.trials()
    assert [trial.id for trial in ranking(trials, maximize=False)] == [2, 3, 1, 4, 5]
    assert best_trial(trials, maximize=True).id == 1
    assert best_trial([], maximize=True) is None


def test_this_directory_is_no_network(tmp_path: Path) -> None:
    assert not is_on_network(tmp_path)


def test_a_round_is_one_transaction(tmp_path: Path, url: str) -> None:
    study, reader = opened(tmp_path, url), opened(tmp_path, url)
    first, second = study.ask_many(2)
    with study.one_transaction():
        study.complete(study.report(first, {1: 0.5}), Result(value=0.25, reports={1: 0.5}))
        assert study.counts()[TrialState.COMPLETE] == 1
        assert reader.counts()[TrialState.COMPLETE] == 0
    assert reader.best()[0].reports == {1: 0.5}
    with suppress(DriverUnreachable), study.one_transaction():
        study.prune(second)
        raise DriverUnreachable("the queue does not answer")
    assert reader.counts()[TrialState.PRUNED] == 1
    assert study.ask().id == 3


def test_intermediate_values_replace_earlier_ones_and_need_a_running_trial(
    tmp_path: Path, url: str
) -> None:
    study = opened(tmp_path, url)
    trial = study.report(study.ask(), {step: 1.0 / step for step in range(1, 9)})
    trial = study.report(trial, {8: 0.5, 9: 0.25, 10: math.inf})
    expected = {**{step: 1.0 / step for step in range(1, 8)}, 8: 0.5, 9: 0.25}
    assert opened(tmp_path, url).running()[0].reports == expected
    study.complete(trial, Result(value=0.25, reports={9: 0.125, 11: 0.25}))
    assert opened(tmp_path, url).trials()[0].reports == {**expected, 9: 0.125, 11: 0.25}
    with pytest.raises(StorageError, match="does not run"):
        study.report(trial, {12: 0.5})
    # Optuna reads them as its own.
    (frozen,) = optuna.load_study(study_name=None, storage=url).trials
    assert frozen.intermediate_values == {**expected, 9: 0.125, 11: 0.25}


def test_a_full_disk_stores_nothing_of_a_round(tmp_path: Path, url: str) -> None:
    study, reader = opened(tmp_path, url), opened(tmp_path, url)
    trial = study.ask()
    with pytest.raises(StorageError), study.one_transaction():  # noqa: PT012
        study.complete(trial, Result(value=0.25))
        study._storage._backend._round.exec_driver_sql("PRAGMA max_page_count=1")
        for number in range(2000):
            study._study.set_user_attr(f"{number}", "x" * 1000)
    assert reader.counts()[TrialState.COMPLETE] == 0
    assert reader.running() == [trial]
