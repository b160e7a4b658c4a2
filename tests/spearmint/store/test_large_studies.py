"""Of a large study, few trials are read."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.trial import TrialState as OptunaState

from spearmint.choosers import GPEIOptChooser, selection
from spearmint.choosers.selection import outline_of
from spearmint.controller.limits import StudyLimits
from spearmint.controller.tally import Tally
from spearmint.layout import Layout
from spearmint.model import Result, TrialState
from spearmint.requests.applying import apply, new_points
from spearmint.requests.inbox import Action, Inbox, Request
from spearmint.store import learning
from spearmint.store.distributions import to_flat
from spearmint.store.opening import read_studies
from spearmint.store.sql import lookups
from spearmint.store.sql.aggregates import Aggregates
from spearmint.store.sql.fast_reads import BulkReadStorage
from spearmint.store.study import Study
from tests.spearmint.store.studies import CONFIG, opened, point, stored


@contextmanager
def never_reading_all(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(
            BulkReadStorage, "_get_trials", lambda *a, **k: pytest.fail("all trials were read")
        )
        yield


def fill(study: Study, n: int = 40) -> None:
    """Store trials in all states, so that more than 30 have ended."""
    draws = np.random.default_rng(3).random(n)
    for i, x in enumerate(draws):
        trial = study.add_running(point(float(x)))
        if i % 8 == 7:
            study.break_(trial, Result(value=None, reason="why"), "")
        elif i % 8 == 6:
            study.prune(trial)
        else:
            study.complete(trial, Result(value=math.inf if i == 3 else (x - 0.3) ** 2))
    study.enqueue({"act": "relu"})
    for x in (0.125, 0.625):
        study.add_running(point(x))


def test_the_outline_follows_every_change(study: Study, url: str, tmp_path: Path) -> None:
    other = opened(tmp_path, url)

    def check() -> None:
        found, expected = study._storage.outline(1), outline_of(stored(url))
        np.testing.assert_array_equal(found.is_running, expected.is_running)
        np.testing.assert_array_equal(found.has_ended, expected.has_ended)
        np.testing.assert_array_equal(found.values, expected.values)

    check()
    fill(study)
    check()
    for running in other.running():
        other.complete(running, Result(value=running.id))
        check()
    other.ask()  # the queued point
    other.add_running(point())
    check()


def test_a_view_reads_the_outline_once(study: Study, url: str, tmp_path: Path) -> None:
    fill(study)
    other, storage = opened(tmp_path, url), study._storage
    running = other.running()
    for trial in running[:2]:
        with storage._backend.one_view():
            before = storage.outline(1)
            other.complete(trial, Result(value=1.0))  # another process
            np.testing.assert_array_equal(storage.outline(1).has_ended, before.has_ended)
        now = storage.outline(1)
        assert now.has_ended[trial.id - 1]
        assert not before.has_ended[trial.id - 1]


def test_running_trials_are_read_without_the_others(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(study)
    expected = [trial for trial in study.trials() if trial.state is TrialState.RUNNING]
    fresh = opened(tmp_path, url)
    with never_reading_all(monkeypatch):
        assert fresh.running() == expected
        assert fresh.has_queued()
        assert len(fresh.queued_points()) == 1
        assert fresh._storage.get_n_trials(1) == 43
        assert fresh._storage.get_n_trials(1, OptunaState.PRUNED) == 5
        fresh.abandon_unproposed()
    assert fresh.trials() == study.trials()


@pytest.mark.parametrize("maximize", [False, True])
def test_a_tally_of_stored_trials_is_that_of_each(study: Study, maximize: bool) -> None:
    for end in (None, 3, 20, 40):
        if end is None:
            trials = []
        else:
            fill(study, end)
            trials = [t for t in study.trials() if t.state is not TrialState.RUNNING]
        object.__setattr__(study.experiment, "maximize", maximize)
        one_by_one = Tally(limits=StudyLimits(), maximize=maximize)
        for trial in trials:
            one_by_one.add(trial)
        one_by_one.forget_failures()
        restored = Tally(limits=StudyLimits(), maximize=maximize)
        restored.restore(study)
        assert restored == one_by_one


def test_proposals_do_not_read_all_trials(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "MOST_ENDED", 30)
    monkeypatch.setattr(selection, "KEPT_ENDED", 12)
    fill(study)
    study.ask()  # the queued point
    in_memory = optuna.create_study(sampler=GPEIOptChooser(seed=1), study_name="mine")
    in_memory.add_trials(stored(url))
    expected = [in_memory.ask(study._distributions).params for _ in range(2)]
    fresh = opened(tmp_path, url)
    with never_reading_all(monkeypatch):
        first = next(fresh.propose())
        assert first == expected[0]
        assert fresh.add_running(first).id == 44
        assert next(fresh.propose()) == expected[1]


def test_a_finite_space_knows_all_its_trials(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "MOST_ENDED", 10)
    monkeypatch.setattr(selection, "KEPT_ENDED", 6)
    config = CONFIG.replace("FLOAT size: 2 min: 0 max: 1", "INT size: 2 min: 1 max: 5")
    study = opened(tmp_path, url, config)
    study.use(GPEIOptChooser(replicates=False, seed=1))  # these values look like noise
    for i in range(49):
        trial = study.ask()
        study.complete(trial, Result(value=float(i)))
    last = study.ask()
    assert len({repr(t.params) for t in study.trials()}) == 50, last


def test_the_indexes_are_made_once_and_leave_optuna_working(
    study: Study, url: str, tmp_path: Path
) -> None:
    opened(tmp_path, url)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        made = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        plan = connection.execute(
            "EXPLAIN QUERY PLAN SELECT 1 FROM trials WHERE study_id = 1 AND state = 'WAITING'"
        ).fetchall()
    assert {"ix_spearmint_trials_state", "ix_spearmint_trials_number"} <= made
    assert "ix_spearmint_trials_state" in str(plan)
    plain = RDBStorage(url)
    plain.upgrade()
    assert plain.get_current_version() == plain.get_head_version()
    assert not {i.name for i in optuna_table().indexes if "spearmint" in str(i.name)}


def optuna_table():
    from optuna.storages._rdb import models

    return models.TrialModel.__table__


def test_a_search_of_an_earlier_release_is_read_without_the_indexes(study: Study, url: str) -> None:
    fill(study)
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("DROP INDEX ix_spearmint_trials_state")
        connection.execute("DROP INDEX ix_spearmint_trials_number")
    (reader,) = read_studies([study.experiment], url)
    assert reader.counts() == study.counts()
    assert reader.running() == study.running()
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        made = connection.execute("SELECT name FROM sqlite_master WHERE name LIKE 'ix_spear%'")
        assert not made.fetchall(), "a reader writes nothing"


def test_points_and_states_are_looked_up_without_reading_all_trials(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(study)
    seen = study.trials()
    flat = [to_flat(study.experiment.variables, trial.params) for trial in seen]
    fresh = opened(tmp_path, url)
    with never_reading_all(monkeypatch):
        assert fresh.states() == {trial.id: trial.state for trial in seen}
        assert fresh.some([7, 3, 99]) == [seen[2], seen[6]]
        assert fresh.at([flat[4], point(0.75), flat[9]]) == [seen[4], seen[9]]
        # The values of two points, in another combination, and a part of a point.
        assert fresh.at([{**flat[4], "act": "relu"}, {"X[0]": flat[4]["X[0]"]}]) == []
        assert fresh.at([]) == []
        assert fresh.fixed_points() == [{"act": "relu"}]
        for known in (flat[0], {"act": "relu"}):
            fresh.enqueue(known)
        assert len(fresh.queued_points()) == 1
        fresh.enqueue(point(0.75))
        assert fresh.queued_points()[1:] == [point(0.75)]
    monkeypatch.setattr(lookups, "_MOST_VALUES", 1)
    assert fresh.at(flat) == seen
    monkeypatch.setattr(Aggregates, "_sql", None)
    assert fresh.at(flat) == seen
    assert fresh.states() == {trial.id: trial.state for trial in seen}
    assert fresh.some([7, 3, 99]) == [seen[2], seen[6]]
    assert fresh.fixed_points() == [{"act": "relu"}, point(0.75)]


@pytest.mark.parametrize("when", ["", 'when: "act=tanh"'])
def test_a_proposal_that_was_never_finished_is_at_no_point(
    tmp_path: Path, url: str, when: str
) -> None:
    more = f'variable {{ name: "depth" type: INT size: 2 min: 1 max: 9 {when} }}\n'
    study = opened(tmp_path, url, CONFIG + more)
    whole = {**point(), "depth[0]": 3, "depth[1]": 4}
    short = {**point(), "act": "relu"} if when else whole
    for params in (whole, short):
        trial = study._study.ask()  # as of a controller that was killed, without the last one
        for name, value in whole.items():
            if name != "depth[1]":
                known = study._distributions[name]
                stored = known.to_internal_repr(params.get(name, value))
                study._storage.set_trial_param(trial._trial_id, name, stored, known)
    study.abandon_unproposed()
    kept = [trial for trial in study.trials() if trial.params["act"] == ("relu",)]
    part = {"act": "tanh"}
    assert study.at([whole, short, part]) == kept
    assert new_points(study, [whole, part]) == [whole, part]
    study.enqueue(part)
    assert study.queued_points() == [part]


def test_of_a_large_region_the_best_and_some_others_are_read(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(study)
    whole = study.as_earlier()
    complete = [t for t in study.trials() if t.state is TrialState.COMPLETE]
    assert [t.value for t in whole.trials] == [t.value for t in complete if t.value != math.inf]
    assert whole.n_complete == len(complete)
    monkeypatch.setattr(learning, "_MOST_READ", 12)
    fresh = opened(tmp_path, url)
    with never_reading_all(monkeypatch):
        some = fresh.as_earlier()
    assert some.n_complete == len(complete)
    assert 11 <= len(some.trials) <= 12
    best = sorted(t.value for t in whole.trials)[:4]
    assert set(best) <= {t.value for t in some.trials}


def test_requests_do_not_read_all_trials(
    study: Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(study)
    broken = study.last(TrialState.BROKEN)
    again = to_flat(study.experiment.variables, broken[0].params)
    study.complete(study.add_running(again), Result(value=1.0))
    fresh, inbox = opened(tmp_path, url), Inbox(Layout(tmp_path))
    requests = (
        Request(action=Action.ADD, points=(again, point(0.75))),
        Request(action=Action.RETRY, trials=tuple(trial.id for trial in broken[:3])),
    )
    with never_reading_all(monkeypatch):
        texts = [apply(fresh, inbox, request) for request in requests]
    assert texts == [
        "Queued 1 point; 1 were tried or queued before.",
        "Queued the points of 2 broken trials.",
    ]
    assert fresh.disregarded() == {trial.id for trial in broken[:3]}
