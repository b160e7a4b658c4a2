from __future__ import annotations

import math
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import make_url

import spearmint
from spearmint.errors import AlreadyRunning, InputError
from spearmint.model import Trial
from spearmint.store.study import Study

CONFIG = """language: PYTHON
name: "mine"
variable { name: "X" type: FLOAT size: 2 min: 0 max: 1 }
variable { name: "n" type: INT min: 1 max: 5 }
variable { name: "act" type: ENUM options: "relu" options: "tanh" }
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.pb"
    path.write_text(CONFIG)
    return path


def test_ask_and_tell(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        assert search.best is None
        for value in (0.5, 0.25, 0.75):
            trial = search.ask()
            assert trial.params["X"].shape == (2,)
            assert trial.params["n"].dtype.kind == "i"
            assert trial.params["act"][0] in ("relu", "tanh")
            search.tell(trial, value)
        assert (search.best.id, search.best.value) == (2, 0.25)
    assert (config.parent / "best_job_and_result.txt").read_text().startswith("Best result: 0.25")


def test_numbers_of_numpy_are_numbers(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser", pruner="median") as search:
        asked = search.ask()
        assert search.report(asked, 0, np.float32("nan"))
        with pytest.raises(InputError, match=r"invalid trial 1\.5"):
            search.tell(1.5, 0.25)
        with pytest.raises(InputError, match=r"invalid count 1\.5"):
            search.ask_many(1.5)
        with pytest.raises(InputError, match="invalid count 'two'"):
            search.ask_many("two")
        search.tell(np.int64(asked.id), np.float32(0.5))
        assert search.best.value == 0.5


def test_a_bool_or_a_fraction_is_no_count_number_or_step(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        asked = search.ask()
        for wrong in (True, np.True_):
            with pytest.raises(InputError, match="invalid count"):
                search.ask_many(wrong)
            with pytest.raises(InputError, match="invalid trial"):
                search.tell(wrong, 0.25)
        for step in (True, 1.5, "1"):
            with pytest.raises(InputError, match="invalid step"):
                search.report(asked, step, 0.25)
        for step in (2.0, np.float32(3), np.int64(4)):
            search.report(asked, step, 0.25)
        assert len(search.trials) == 1
        assert search.pending[0].id == asked.id


def test_several_proposals_at_once_differ(config: Path) -> None:
    with spearmint.Search(config) as search:
        trials = [search.ask() for _ in range(6)]
        points = {tuple(np.round(trial.params["X"], 9)) for trial in trials}
        assert len(points) == 6
        assert [trial.id for trial in search.pending] == [1, 2, 3, 4, 5, 6]
        for trial in reversed(trials):
            search.tell(trial, float(trial.params["X"][0]))
        assert search.pending == []


def test_many_are_asked_at_once_and_queued_points_come_first(config: Path) -> None:
    with spearmint.Search(config, method="GPEIOptChooser") as search:
        for number in range(6):
            search.tell(search.ask(), float(number))
        search._study.enqueue({"X[0]": 0.125, "X[1]": 0.5, "n": 3, "act": "tanh"})
        asked = search.ask_many(5)
        assert [trial.id for trial in asked] == [7, 8, 9, 10, 11]
        assert asked[0].params["X"][0] == 0.125
        assert len({repr(trial.params) for trial in asked}) == 5
        assert [trial.id for trial in search.pending] == [7, 8, 9, 10, 11]
        for trial in reversed(asked):
            search.tell(trial, 1.0)
        for count in (0, -1):
            with pytest.raises(InputError, match="count"):
                search.ask_many(count)
    with spearmint.Search(config, method="TPESampler") as search:
        assert [trial.id for trial in search.ask_many(3)] == [12, 13, 14]


def test_results_of_a_block_are_stored_together(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        first, second, third = search.ask_many(3)
        trace = config.parent / "trace.csv"
        lines = trace.read_text().splitlines() if trace.exists() else []
        url = search._study.url
        with search.one_transaction(), search.one_transaction():
            search.tell(first, 0.5, reports={1: 0.75, 3: 0.5})
            search.tell(second, None, reason="odd", reports={1: 9.0})
            assert search.best.id == first.id
            assert stored_states(url) == ["RUNNING"] * 3
        assert stored_states(url) == ["COMPLETE", "FAIL", "RUNNING"]
        assert len(trace.read_text().splitlines()) == len(lines) + 1
        with pytest.raises(InputError, match="not pending"), search.one_transaction():  # noqa: PT012
            search.tell(third, 0.25)
            search.report(first, 1, 0.5)
        trials = search.trials
        with search.one_transaction():
            fourth, _ = search.ask_many(2)
            search.tell(fourth, 1.0)
            assert [trial.id for trial in search.ask_many(1)] == [6]
            assert len(stored_states(url)) == 3  # all in the transaction of the block
        assert [trial.id for trial in search.pending] == [5, 6]
        assert [trial.value for trial in trials] == [0.5, None, 0.25]
        assert [dict(trial.reports) for trial in trials] == [{1: 0.75, 3: 0.5}, {1: 9.0}, {}]
    with pytest.raises(InputError, match="closed"), search.one_transaction():
        pass


def test_the_trials_of_a_block_are_read_at_once(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = []
    find = Study.find_running

    def counted(self: Study, trial_id: int) -> Trial | None:
        single.append(trial_id)
        return find(self, trial_id)

    monkeypatch.setattr(Study, "find_running", counted)
    with spearmint.Search(config, method="RandomChooser") as search:
        asked = search.ask_many(8)
        with search.one_transaction():
            for trial in asked[:6]:
                search.tell(trial, float(trial.id), reports={1: 2.0})
            assert single == [1]
            search.report(asked[6], 1, 9.0)
            search.report(asked[6], 2, 8.0)
            search.tell(asked[6], 7.0)
            with pytest.raises(InputError, match="trial 3 is not pending"):
                search.tell(asked[2], 0.0)
            later = search.ask()
            search.tell(later, 0.5)
        assert [trial.value for trial in search.trials] == [1, 2, 3, 4, 5, 6, 7, None, 0.5]
        assert dict(search.trials[6].reports) == {1: 9.0, 2: 8.0}
        search.tell(asked[7], 8.0)
        assert single[-1] == 8  # not from the memory of the block


def stored_states(url: str) -> list[str]:
    """Return the states of trials by number, as another process sees them."""
    with closing(sqlite3.connect(make_url(url).database)) as base:
        return [state for (state,) in base.execute("SELECT state FROM trials ORDER BY number")]


def test_results_that_cannot_be_stored_are_errors(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        asked = search.ask()
        for reports in ({1: 10**400}, {10**400: 1.0}, {1: "fast"}):
            with pytest.raises(InputError, match=r"invalid value|too large"):
                search.report_many(asked, reports)
            with pytest.raises(InputError, match=r"invalid value|too large"):
                search.tell(asked, 1.0, reports=reports)
        assert [trial.id for trial in search.pending] == [asked.id]
        assert not search.trials[0].reports


def test_threads_are_served_one_at_a_time(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = []
    ask = Study.ask

    def slow(study: Study) -> Trial:
        inside.append(threading.get_ident())
        time.sleep(0.02)
        assert inside == [threading.get_ident()], "two threads propose at the same time"
        try:
            return ask(study)
        finally:
            inside.clear()

    monkeypatch.setattr(Study, "ask", slow)
    with spearmint.Search(config) as search, ThreadPoolExecutor(4) as pool:
        asked = list(pool.map(lambda _: search.ask(), range(8)))
        assert len({tuple(trial.params["X"]) for trial in asked}) == 8
        list(pool.map(lambda trial: search.tell(trial, 0.5), asked))
        assert [trial.value for trial in search.trials] == [0.5] * 8


def test_another_process_can_tell_later(config: Path) -> None:
    with spearmint.Search(config) as search:
        asked = search.ask()
    with spearmint.Search(config) as search:
        assert [trial.id for trial in search.pending] == [asked.id]
        assert np.array_equal(search.pending[0].params["X"], asked.params["X"])
        search.tell(asked.id, 0.5)
        assert search.best.value == 0.5


@pytest.mark.parametrize("value", [math.nan, None, np.float32("nan"), np.array([np.nan])])
def test_a_trial_without_a_number_is_broken(config: Path, value: object) -> None:
    with spearmint.Search(config) as search:
        search.tell(search.ask(), value, reason="out of memory")
        assert search.best is None
        assert search.trials[0].reason == "out of memory"


def test_what_is_no_number_leaves_the_trial_pending(config: Path) -> None:
    with spearmint.Search(config, method_args={"mcmc_iters": 5}) as search:
        trial = search.ask()
        with pytest.raises(InputError, match=r"'0\.5'"):
            search.tell(trial, "0.5")
        search.tell(trial, 0.5)
        assert search.best.value == 0.5


def test_telling_twice_or_of_nothing_is_an_error(config: Path) -> None:
    with spearmint.Search(config) as search:
        trial = search.ask()
        search.tell(trial, 0.5)
        with pytest.raises(InputError, match=r"\btrial 1\b.*\bnone\b"):
            search.tell(trial, 0.25)
        with pytest.raises(InputError, match=r"\btrial 9\b"):
            search.tell(9, 0.25)
        assert search.best.value == 0.5


def test_one_search_at_a_time(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        with pytest.raises(AlreadyRunning, match=r"\bclose\(\)"):
            spearmint.Search(config)
        asked = search.ask()
    with spearmint.Search(config):
        for late in (search.ask, lambda: search.tell(asked, 0.5), lambda: search.prune(asked)):
            with pytest.raises(InputError, match=r"\bspearmint\.Search\("):
                late()
        assert [trial.id for trial in search.pending] == [asked.id]


def test_a_wrong_method_leaves_no_lock(config: Path) -> None:
    with pytest.raises(InputError, match=r"'GPEIOptChooser'\?"):
        spearmint.Search(config, method="GPEIOptChoser")
    spearmint.Search(config).close()


def test_a_trial_that_will_not_be_good_ends_early(config: Path) -> None:
    options = {"method": "RandomChooser", "pruner": "median"}
    with spearmint.Search(config, pruner_args={"n_startup_trials": 2}, **options) as search:
        for level in (1.0, 2.0):
            good = search.ask()
            for step in range(5):
                assert not search.report(good, step, level - step / 10)
            search.tell(good, level)
        bad = search.ask()
        assert search.report(bad, 4, 3.0)
        search.prune(bad)
        assert [trial.state.value for trial in search.trials] == ["complete"] * 2 + ["pruned"]
        assert search.trials[2].reports == {4: 3.0}
        assert search.trials[0].reports == {step: 1.0 - step / 10 for step in range(5)}
        assert search.best.value == 1.0
        assert search.pending == []
        with pytest.raises(InputError, match=r"\btrial 3\b"):
            search.report(bad, 5, 1.0)
        assert search.report(search.ask(), 0, math.inf)
        assert search.report(search.ask(), 0, math.nan)


def test_without_a_pruner_nothing_ends_early(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser") as search:
        trial = search.ask()
        assert not search.report(trial, 0, 1e9)
        assert not search.report(trial, 1, math.inf)
        search.tell(trial, 1.0)
        assert search.trials[0].reports == {0: 1e9}


def test_many_values_are_reported_at_once(config: Path) -> None:
    with spearmint.Search(config, method="RandomChooser", pruner="median") as search:
        trial = search.ask()
        assert search.prunes
        assert not search.report_many(trial, {2: 0.5, 1: 0.75})
        assert not search.report_many(trial, {})
        with pytest.raises(InputError, match="invalid value None"):
            search.report_many(trial, {3: 0.25, 4: None})
        with pytest.raises(InputError, match="expected one number"):
            search.report_many(trial, {3: np.array([0.25, 0.5])})
        assert search.report_many(trial, {3: 0.25, 4: math.inf})
        assert search.pending[0].id == trial.id
        search.tell(trial, 0.25)
        assert search.trials[0].reports == {1: 0.75, 2: 0.5, 3: 0.25}
    with spearmint.Search(config, method="RandomChooser") as search:
        assert not search.prunes


def test_the_pruner_of_the_config_is_used(config: Path) -> None:
    config.write_text(CONFIG + 'pruner: "threshold"\npruner_args: "upper=1"\n')
    with spearmint.Search(config, method="RandomChooser") as search:
        trial = search.ask()
        assert not search.report(trial, 0, 0.5)
        assert search.report(trial, 1, 1.5)
    with pytest.raises(InputError, match="'medium'"):
        spearmint.Search(config, pruner="medium")
