"""The loop with a driver in memory: order, limits, retries, failures of the queue."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from spearmint.choosers import RandomChooser
from spearmint.choosers.history import trials_of
from spearmint.drivers import Job
from spearmint.errors import DriverError, SearchFailed, StorageError
from spearmint.layout import read_json, write_json
from spearmint.model import TrialState
from tests.spearmint.fakes import FakeDriver


def test_it_ends_after_enough_complete_trials_broken_ones_not_counted(make_loop) -> None:
    driver = FakeDriver({2: ["no luck"]})
    loop = make_loop(driver, finished=4)
    figures = loop.run()
    assert (figures.complete, figures.broken, figures.running) == (4, 1, 0)
    assert figures.best.id == 1
    broken = next(t for t in loop.observer.ended_ if t.state is TrialState.BROKEN)
    assert broken.reason == "no luck"


def test_deleted_folders_of_trials_are_created_again(make_loop) -> None:
    loop = make_loop(FakeDriver(), finished=4)
    layout = loop.layout

    def delete(*_: object) -> None:
        for directory in (layout.jobs, layout.outputs):
            shutil.rmtree(directory, ignore_errors=True)

    loop.observer.ended = delete
    assert loop.run().complete == 4


def test_it_fills_at_once_and_never_runs_more(make_loop) -> None:
    driver = FakeDriver()
    loop = make_loop(driver, finished=10, concurrent=4)
    loop.run()
    assert loop.observer.lines[:4] == [f"submitted {i}" for i in (1, 2, 3, 4)]
    assert driver.most == 4
    assert len(driver.folders) == 10, "no more trials than requested"


def test_a_message_of_the_chooser_is_shown_once_and_it_knows_the_number_of_trials(
    make_loop,
) -> None:
    loop = make_loop(FakeDriver(), finished=4)
    chooser = RandomChooser(seed=0)
    chooser._notices.append("The search has converged.")
    loop.study.use(chooser)
    loop.run()
    assert loop.observer.lines.count("The search has converged.") == 1
    assert chooser.total == 4


def test_maximum(make_loop) -> None:
    loop = make_loop(FakeDriver(), finished=3, maximize=True)
    assert loop.run().best.id == 3


def test_a_vanished_job_runs_again_up_to_the_limit(make_loop) -> None:
    driver = FakeDriver({1: [None, 0.5], 2: [None, None]})
    loop = make_loop(driver, finished=2)
    figures = loop.run()
    assert (figures.complete, figures.broken) == (2, 1)
    rows = {trial.id: trial for trial in loop.study.trials()}
    assert (rows[1].value, rows[1].lost) == (0.5, 1)
    assert rows[2].reason == "vanished, 2 times"


def test_a_poll_that_fails_changes_no_trial(make_loop) -> None:
    driver = FakeDriver({1: ["stay"]})
    loop = make_loop(driver)
    driver.polls_fail = True
    with pytest.raises(DriverError):
        loop.run()
    driver.polls_fail = False
    driver.outcomes.clear()
    again = make_loop(driver, finished=1)
    assert again.run().complete == 1
    assert len(driver.folders) == 1, "the running job was adopted"


def test_an_end_that_a_full_disk_did_not_store_is_not_reported(make_loop) -> None:
    loop = make_loop(FakeDriver(), finished=2)
    whole = loop.study.one_transaction

    @contextmanager
    def full() -> Iterator[None]:
        with whole():
            yield
            if not loop.study.best():
                return
            loop.study._storage._backend._round.exec_driver_sql("PRAGMA max_page_count=1")
            for number in range(2000):
                loop.study._study.set_user_attr(f"{number}", "x" * 1000)

    loop.study.one_transaction = full
    with pytest.raises(StorageError):
        loop.run()
    assert not loop.observer.ended_
    again = make_loop(FakeDriver(), finished=2)
    assert again.run().complete == 2
    assert sorted(trial.id for trial in again.observer.ended_) == [1, 2]


def test_a_result_that_was_not_stored_is_stored_on_resume(make_loop) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    key = loop.study.key(trial)
    write_json(folder.result, {"value": 0.125, "seconds": 3.0, "key": key})
    driver = FakeDriver()
    figures = make_loop(driver, finished=1).run()
    assert (figures.complete, figures.best.value) == (1, 0.125)
    assert not driver.folders, "nothing was rerun"


def test_a_trial_without_a_job_is_started_on_resume(make_loop) -> None:
    trial = make_loop(FakeDriver()).study.ask()
    loop = make_loop(FakeDriver(), finished=1)
    loop.run()
    spec = read_json(loop.layout.folder(trial.id).spec)
    assert spec["params"]["x"]["values"] == list(trial.params["x"])
    assert [t.id for t in loop.study.trials()] == [trial.id]
    assert loop.study.trials()[0].lost == 0


def test_a_torn_result_counts_as_none(make_loop) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    folder.result.write_text('{"value": 0.')
    assert make_loop(FakeDriver(), finished=1).run().best.value == 1.0


@pytest.mark.parametrize("left", [{"loss": 1}, [1], {"value": 0.5, "key": "another"}, {"value": 1}])
def test_a_file_that_no_runner_wrote_counts_as_none(make_loop, left: object) -> None:
    loop = make_loop(FakeDriver())
    trial = loop.study.ask()
    folder = loop.layout.folder(trial.id)
    folder.path.mkdir(parents=True)
    write_json(folder.result, left)
    driver = FakeDriver()
    assert make_loop(driver, finished=1).run().best.value == 1.0
    assert len(driver.folders) == 1, "it ran"


def test_interrupted_trials_start_again_within_the_limits(make_loop) -> None:
    study = make_loop(FakeDriver()).study
    asked = [study.ask() for _ in range(4)]
    driver = FakeDriver()
    figures = make_loop(driver, finished=2, concurrent=1).run()
    assert driver.most == 1
    assert (figures.complete, len(driver.folders)) == (2, 2)
    assert [trial.id for trial in study.running()] == [trial.id for trial in asked[2:]]


def test_a_job_that_we_ended_is_not_a_broken_trial(make_loop) -> None:
    class SaysGoodbye(FakeDriver):
        def cancel(self, jobs: Collection[Job]) -> None:
            for job in set(jobs) - self.ended:
                self.leave(job, {"reason": "called sys.exit(143)"})
            super().cancel(jobs)

    loop = make_loop(SaysGoodbye({1: ["stay"]}), finished=1, timeout=0.1)
    loop.run()
    assert "0.1 s" in loop.study.trials()[0].reason
    stopped = make_loop(SaysGoodbye({3: ["stay"]}), finished=2)
    stopped.driver.wait = lambda jobs, timeout_s: setattr(stopped.stop, "now", True)
    stopped.run()
    assert [trial.id for trial in stopped.study.running()] == [3]
    assert make_loop(FakeDriver(), finished=2).run().complete == 2


def test_the_first_broken_trials_end_the_search(make_loop) -> None:
    driver = FakeDriver({i: ["typo"] for i in range(1, 50)})
    with pytest.raises(SearchFailed, match=r"\bfirst 3 trials\b.*\btrial 3: typo"):
        make_loop(driver, broken=3).run()
    assert len(driver.folders) == 3


def test_a_success_among_the_first_lets_it_go_on(make_loop) -> None:
    driver = FakeDriver({**{i: ["typo"] for i in range(1, 5)}, 5: [0.5]})
    assert make_loop(driver, broken=5, finished=3).run().complete == 3


def test_broken_trials_in_a_row_end_it_later_too(make_loop) -> None:
    driver = FakeDriver({i: ["typo"] for i in range(2, 99)})
    with pytest.raises(SearchFailed, match=r"\blast 20 trials\b"):
        make_loop(driver, broken=2).run()


def test_a_trial_past_its_time_is_ended(make_loop) -> None:
    driver = FakeDriver({1: ["stay"]})
    loop = make_loop(driver, finished=1, timeout=0.1)
    loop.run()
    assert "0.1 s" in loop.study.trials()[0].reason


def test_a_result_just_in_time_counts(make_loop) -> None:
    class LastMoment(FakeDriver):
        def cancel(self, jobs: Collection[Job]) -> None:
            for job in jobs:
                self.leave(job, {"value": 0.5})
            super().cancel(jobs)

    figures = make_loop(LastMoment({1: ["stay"]}), finished=1, timeout=0.1).run()
    assert figures.best.value == 0.5


def test_trace_and_best_follow(make_loop, tmp_path: Path) -> None:
    make_loop(FakeDriver(), finished=2).run()
    last = (tmp_path / "trace.csv").read_text().splitlines()[-1]
    assert last.split(",")[1:] == ["1.000000", "1", "98", "0", "2"]
    assert (tmp_path / "best_job_and_result.txt").read_text().startswith("Best result: 1.000000\n")


@pytest.mark.parametrize("is_fixed", [True, False])
def test_a_bug_that_is_fixed_does_not_count_against_points(
    make_loop, tmp_path: Path, is_fixed: bool
) -> None:
    (tmp_path / "x.py").touch()
    with pytest.raises(SearchFailed):
        make_loop(FakeDriver({i: ["typo"] for i in range(1, 9)}), broken=3).run()
    if is_fixed:
        (tmp_path / "x.py").write_text("fixed")
    search = make_loop(FakeDriver({5: ["out of memory"]}), finished=2)
    search.run()
    seen = trials_of(search.study._study, number=99)
    ids = [trial.number + 1 for trial in seen]
    assert ids == [4, 5, 6], "later broken trials count, and a success clears the first ones"
    assert len(search.study.trials()) == 6, "users see all"
