"""Trials that pause at rungs and are resumed: the loop, kills at any instant, users' requests."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Collection, Mapping

import pytest

from spearmint.controller.warm_start import warm_points
from spearmint.drivers import Job, JobRequest, JobState
from spearmint.errors import QueueFull
from spearmint.fidelity import Fidelity
from spearmint.layout import TrialFolder, read_json
from spearmint.model import TrialState
from spearmint.requests.inbox import Action, Inbox, Request
from spearmint.store.study import Study
from tests.spearmint.fakes import FakeDriver, Search

RUNGS = Fidelity(name="epochs", low=1, high=9, reduction=3)


class Trains(FakeDriver):
    """Each part of trial N ends with N + 1 / steps; ``parts`` counts how often each part ran."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: Counter[tuple[int, int, int]] = Counter()

    def submit(self, request: JobRequest) -> Job:
        folder = request.folder
        busy = [job for job, at in self.folders.items() if at == folder and job not in self.ended]
        assert not busy, "the last job of this trial still runs"
        return super().submit(request)

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in [job for job in jobs if job not in self.ended]:
            folder = self.folders[job]
            number, (before, until) = int(folder.path.name), read_json(folder.spec)["steps"]
            self.parts[number, before, until] += 1
            folder.reports.write_text("".join(f"{s},{number}\n" for s in range(before + 1, until)))
            self.leave(job, {"value": number + 1 / until, "seconds": float(until - before)})
            self.ended.add(job)


def loop(make_loop, driver: FakeDriver, finished: int = 9, **options) -> Search:
    return make_loop(driver, fidelity=RUNGS, finished=finished, **options)


def states(study: Study) -> Counter[TrialState]:
    return Counter(trial.state for trial in study.trials())


def test_the_best_third_of_each_rung_is_resumed_and_trains_only_what_is_left(make_loop) -> None:
    driver = Trains()
    search = loop(make_loop, driver)
    figures = search.run()
    assert (figures.complete, figures.paused, figures.running) == (1, 8, 0)
    assert figures.finished == 9
    assert max(driver.parts.values()) == 1, "no part ran twice"
    assert sorted(driver.parts) == sorted(
        [*((n, 0, 1) for n in range(1, 10)), (1, 1, 3), (2, 1, 3), (3, 1, 3), (1, 3, 9)]
    )
    one, two, *_ = search.study.trials()
    assert (one.state, one.value, one.rungs) == (TrialState.COMPLETE, 1 + 1 / 9, (2.0, 1 + 1 / 3))
    assert (two.state, two.value, two.rungs) == (TrialState.PAUSED, None, (3.0, 2 + 1 / 3))
    assert (one.seconds, two.seconds) == (9.0, 3.0), "of all parts"
    assert sorted(one.reports) == [2, 4, 5, 6, 7, 8], "the curve has all parts"
    assert figures.seconds == search.study.seconds() == 9 + 3 + 3 + 6 * 1
    assert search.study.counts()[TrialState.PAUSED] == 8
    assert [trial.id for trial in search.study.last(TrialState.PAUSED)] == list(range(2, 10))
    assert not search.study.last(TrialState.RUNNING)
    assert not search.study.running()


def test_larger_values_are_better_if_maximised(make_loop) -> None:
    driver = Trains()
    search = loop(make_loop, driver, maximize=True, concurrent=3)
    search.run()
    complete = [t.id for t in search.study.trials() if t.state is TrialState.COMPLETE]
    assert complete
    assert min(complete) > 3


def test_a_later_run_with_a_larger_limit_continues_paused_trials(make_loop) -> None:
    driver = Trains()
    loop(make_loop, driver, finished=2).run()
    assert {until for _, _, until in driver.parts} == {1}
    figures = loop(make_loop, driver, finished=9).run()
    assert (figures.complete, figures.paused) == (1, 8)
    assert max(driver.parts.values()) == 1
    search = loop(make_loop, Trains(), finished=9)
    assert search.run().finished == 9
    assert any("already finished" in line for line in search.observer.lines)
    assert not search.driver.parts


class Crosses(Trains):
    """The best trials of a rung are the worst ones at the end."""

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        for job in [job for job in jobs if job not in self.ended]:
            number = int(self.folders[job].path.name)
            before, until = read_json(self.folders[job].spec)["steps"]
            self.parts[number, before, until] += 1
            self.leave(job, {"value": -number if until == 9 else number, "seconds": 1.0})
            self.ended.add(job)


def test_where_curves_cross_later_trials_train_to_the_end(make_loop) -> None:
    driver = Crosses()
    for limit in (20, 40):  # the second controller reads all from the database
        search = loop(make_loop, driver, finished=limit, concurrent=2)
        search.run()
    assert max(driver.parts.values()) == 1
    complete = [t for t in search.study.trials() if t.state is TrialState.COMPLETE]
    assert max(trial.id for trial in complete) > 30, "of the worst at the first rung"
    later = [trial for trial in search.study.trials() if trial.id > 30]
    assert all(trial.state is TrialState.COMPLETE or len(trial.rungs) == 2 for trial in later)


class Killed(BaseException):
    """The controller is killed here."""


WRITES = ("pause", "resume_paused", "complete")


def kill_at(monkeypatch: pytest.MonkeyPatch, driver: Trains, instant: int) -> None:
    """Kill the controller before or after the write or submission number ``instant``."""
    count = itertools.count()

    def wrap(target: object, name: str) -> None:
        original = getattr(target, name)

        def call(*arguments: object, **options: object) -> object:
            if next(count) == instant:
                raise Killed
            result = original(*arguments, **options)
            if next(count) == instant:
                raise Killed
            return result

        monkeypatch.setattr(target, name, call)

    wrap(driver, "submit")
    for name in WRITES:
        wrap(Study, name)


@pytest.mark.parametrize("instant", range(29))
def test_a_kill_at_any_instant_loses_nothing_and_runs_no_part_twice(
    make_loop, monkeypatch, instant: int
) -> None:
    driver, halves = Trains(), Fidelity(low=1, high=2, reduction=2)
    search = make_loop(driver, fidelity=halves, finished=4, concurrent=2)
    with monkeypatch.context() as patched:
        kill_at(patched, driver, instant)
        with contextlib.suppress(Killed):
            search.run()
    search = make_loop(driver, fidelity=halves, finished=4, concurrent=2)
    figures = search.run()
    assert (figures.complete, figures.paused, figures.running) == (2, 2, 0)
    parts = [(1, 0, 1), (1, 1, 2), (2, 0, 1), (2, 1, 2), (3, 0, 1), (4, 0, 1)]
    assert driver.parts == dict.fromkeys(parts, 1)
    assert states(search.study) == {TrialState.COMPLETE: 2, TrialState.PAUSED: 2}
    assert figures.seconds == search.study.seconds() == 6.0


class Queue(Trains):
    """A queue whose jobs exit some polls after their result; it is full now and then."""

    detaches = True

    def __init__(self) -> None:
        super().__init__()
        self.polls: Counter[Job] = Counter()
        self.written: set[Job] = set()
        self.submissions = 0

    def submit(self, request: JobRequest) -> Job:
        self.submissions += 1
        if self.submissions % 4 == 0:
            raise QueueFull("the queue is full")
        return super().submit(request)

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        return {job: self._state(job) for job in jobs}

    def _state(self, job: Job) -> JobState:
        if job in self.ended:
            return JobState.GONE
        if job not in self.written:
            return JobState.ALIVE
        self.polls[job] += 1
        if self.polls[job] > 3:
            self.ended.add(job)
        return JobState.FINISHED

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        started = [job for job in jobs if job not in self.written]
        super().wait(started, timeout_s)
        self.written.update(started)
        self.ended.difference_update(started)

    def adopt(self, folder: TrialFolder) -> Job | None:
        return None if folder.result.exists() else super().adopt(folder)


def test_a_trial_is_not_resumed_before_its_last_job_has_ended(make_loop, monkeypatch) -> None:
    monkeypatch.setattr("spearmint.controller.controller._REFUSED_S", 0.01)
    driver = Queue()
    figures = loop(make_loop, driver, concurrent=2).run()
    assert figures.finished == 9
    assert figures.complete >= 1
    assert max(driver.parts.values()) == 1


def test_a_trial_whose_job_does_not_exit_is_not_resumed_and_blocks_no_other(
    make_loop, monkeypatch
) -> None:
    monkeypatch.setattr("spearmint.controller.ending.EXIT_GRACE_S", -1.0)

    class Stays(Queue):
        def _state(self, job: Job) -> JobState:
            if job not in self.written:
                return JobState.ALIVE
            if self.is_first(job):
                return JobState.FINISHED
            self.ended.add(job)
            return JobState.GONE

        def is_first(self, job: Job) -> bool:
            return int(self.folders[job].path.name) == 1

        def submit(self, request: JobRequest) -> Job:
            assert not any(
                self.is_first(job) for job, at in self.folders.items() if at == request.folder
            )
            return super().submit(request)

        def end(self, jobs: Collection[Job]) -> None:
            """The host does not answer."""

    monkeypatch.setattr("spearmint.controller.controller._REFUSED_S", 0.01)
    driver = Stays()
    figures = loop(make_loop, driver).run()
    assert figures.finished == 9
    assert not driver.parts[1, 1, 3], "its job still runs"
    assert driver.parts[2, 1, 3] == 1


def test_a_job_of_an_earlier_controller_is_awaited(make_loop) -> None:
    class Lingers(Trains):
        """The last job of trial 1 still runs after its result is stored."""

        def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
            self.ended.update(job for job in jobs if job.id == "old")
            super().wait(jobs, timeout_s)

    driver = Lingers()
    search = loop(make_loop, driver, finished=2)
    search.run()
    driver.folders[Job("fake", "old")] = search.layout.folder(1)
    figures = loop(make_loop, driver, finished=4).run()
    assert (figures.complete, figures.paused) == (0, 4)
    assert driver.parts[1, 1, 3] == 1


def test_a_lost_job_of_a_resumed_trial_is_retried_at_the_same_rung(make_loop) -> None:
    class Loses(Trains):
        lost = False

        def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
            for job in jobs:
                if not self.lost and read_json(self.folders[job].spec)["steps"] == [1, 3]:
                    self.lost = True
                    self.ended.add(job)
            super().wait(jobs, timeout_s)

    driver = Loses()
    figures = loop(make_loop, driver).run()
    assert driver.lost
    assert (figures.complete, figures.paused, figures.broken) == (1, 8, 0)
    assert max(driver.parts.values()) == 1


def test_a_resumed_trial_that_fails_is_broken_with_the_time_of_all_parts(make_loop) -> None:
    class Fails(Trains):
        def leave(self, job: Job, result: dict[str, object]) -> None:
            is_first = read_json(self.folders[job].spec)["steps"][0] == 0
            super().leave(job, result if is_first else {"reason": "no", "seconds": 2.0})

    search = loop(make_loop, Fails(), finished=4)
    figures = search.run()
    (broken,) = search.study.last(TrialState.BROKEN)[:1]
    assert broken.seconds == 3.0
    assert broken.rungs == (2.0,)
    assert figures.complete == 0
    assert figures.seconds == search.study.seconds()


def test_a_paused_trial_that_a_user_stops_is_never_resumed(make_loop) -> None:
    driver = Trains()
    loop(make_loop, driver, finished=2).run()
    search = loop(make_loop, driver, finished=9)
    request = Request(action=Action.STOP, region="", trials=(1,), reason="stopped by me")
    Inbox(search.layout).put(request)
    figures = search.run()
    assert figures.broken == 1
    one = search.study.find(1)
    assert one is not None
    assert (one.state, one.reason) == (TrialState.BROKEN, "stopped by me")
    assert not driver.parts[1, 1, 3]
    assert (figures.complete, figures.paused) == (1, 8)
    assert 1 not in search.study.climbers()
    assert loop(make_loop, driver, finished=9).run().complete == 1, "also not by a later run"


def test_a_stop_rule_also_stops_paused_trials(make_loop) -> None:
    driver = Trains()
    figures = loop(make_loop, driver, finished=100, target=1.2).run()
    assert figures.best is not None
    assert figures.best.id == 1
    assert figures.finished < 100
    figures = loop(make_loop, driver, finished=100, patience=3).run()
    assert figures.finished < 100


def test_patience_counts_from_the_first_complete_trial(make_loop) -> None:
    figures = loop(make_loop, Trains(), finished=9, patience=2).run()
    assert figures.complete == 1, "eight paused trials before did not end the search"


def test_a_trial_that_trains_beyond_its_rung_is_reported_once(make_loop) -> None:
    class Ignores(Trains):
        def leave(self, job: Job, result: dict[str, object]) -> None:
            self.folders[job].reports.write_text("9,0.5\n")
            super().leave(job, result)

    search = loop(make_loop, Ignores(), finished=4)
    search.run()
    (note,) = [line for line in search.observer.lines if "spearmint.steps()" in line]
    assert "trial 1 reported step 9, and its part ended at 1 epochs" in note


def test_each_region_has_its_own_rungs(make_loop) -> None:
    halves = Fidelity(low=1, high=2, reduction=2)
    search = make_loop(Trains(), fidelity=halves, regions=("us", "eu"), finished=2, concurrent=2)
    search.run()
    figures = {region: (each.complete, each.paused) for region, each in search.figures.items()}
    assert figures == {"us": (1, 1), "eu": (1, 1)}


def test_a_warm_start_learns_from_paused_trials(make_loop) -> None:
    search = loop(make_loop, Trains(), finished=9)
    search.run()
    trials = search.study.trials()
    assert states(search.study) == {TrialState.COMPLETE: 1, TrialState.PAUSED: 8}
    climbed = sorted(trials, key=lambda trial: -len(trial.rungs))[:3]
    assert [len(trial.rungs) for trial in climbed] == [2, 2, 2]
    points = warm_points(search.study.experiment, [trials], 3)
    assert points
    assert {point["x"] for point in points} <= {trial.params["x"][0] for trial in climbed}
