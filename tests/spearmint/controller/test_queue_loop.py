"""The loop with a queue: jobs that wait, end slowly or keep running, and a queue without answer."""

from __future__ import annotations

import errno
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from spearmint.cli import run_search
from spearmint.controller import capacity, controller, ending, running_trial
from spearmint.drivers import Job, JobEnd, JobRequest, JobState
from spearmint.errors import (
    CannotStart,
    DriverUnreachable,
    NotWritable,
    QueueFull,
    SearchFailed,
    StorageError,
)
from tests.spearmint.fakes import FakeDriver


class FakeQueue(FakeDriver):
    """Keeps each job queued for ``queued`` polls; a finished job exits after ``leaving`` polls."""

    detaches = True

    def __init__(self, outcomes=None, *, queued: int = 1, leaving: int = 1) -> None:
        super().__init__(outcomes)
        self.queued, self.leaving = queued, leaving
        self.polls: dict[Job, int] = {}
        self.stays: dict[Job, int] = {}
        self.silent_for = 0
        self.cancelled: list[Job] = []
        self.how = JobEnd("vanished")

    def _answer(self) -> None:
        if self.silent_for > 0:
            self.silent_for -= 1
            raise DriverUnreachable("no answer")

    def submit(self, request: JobRequest) -> Job:
        self._answer()
        return super().submit(request)

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        self._answer()
        return {job: self._state(job) for job in jobs}

    def _state(self, job: Job) -> JobState:
        self.polls[job] = self.polls.get(job, 0) + 1
        if job in self.ended and self.folders[job].result.exists():
            self.stays[job] = self.stays.get(job, 0) + 1
            return JobState.FINISHED if self.stays[job] <= self.leaving else JobState.GONE
        if job in self.ended:
            return JobState.GONE
        return JobState.WAITING if self.polls[job] <= self.queued else JobState.ALIVE

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        running = [job for job in jobs if self.polls.get(job, 0) > self.queued]
        super().wait([job for job in running if job not in self.ended], timeout_s)

    def cancel(self, jobs: Collection[Job]) -> None:
        self.cancelled += [job for job in jobs if job not in self.ended]
        super().cancel(jobs)

    def explain(self, job: Job) -> JobEnd:
        return self.how


def test_a_trial_is_stored_while_its_job_still_leaves_and_the_next_one_starts(make_loop) -> None:
    driver = FakeQueue(leaving=3)
    loop = make_loop(driver, finished=3)
    assert loop.run().complete == 3
    assert all(count == 4 for count in driver.stays.values()), "watched until it ended"
    assert not driver.cancelled


def test_a_job_that_stays_is_ended_once_and_holds_nothing_up(make_loop, monkeypatch) -> None:
    monkeypatch.setattr(ending, "EXIT_GRACE_S", 0.0)
    driver = FakeQueue(leaving=10**6)
    assert make_loop(driver, finished=2).run().complete == 2
    assert list(driver.stays.values()) == [1, 1], "terminated once, then ignored"


def test_a_trial_past_its_time_on_a_lost_host_is_broken_all_the_same(make_loop, monkeypatch):
    monkeypatch.setattr(running_trial, "_STUCK_S", 0.05)
    driver = FakeQueue({1: ["stay"]})
    cancelled = []
    monkeypatch.setattr(driver, "cancel", cancelled.append)
    loop = make_loop(driver, finished=1, broken=1, timeout=0.01)
    with pytest.raises(SearchFailed):
        loop.run()
    assert "0.01 s" in loop.study.trials()[0].reason
    assert len(cancelled) == 1, "once, and the search continues"


def test_what_waits_counts_as_queued_and_takes_no_time(make_loop) -> None:
    driver = FakeQueue({1: ["stay"], 2: ["stay"]}, queued=10**6)
    loop = make_loop(driver, finished=5, concurrent=2, timeout=0.01)
    polls = []

    def stop_later(jobs: Collection[Job], timeout_s: float) -> None:
        polls.append(1)
        loop.stop.requested = len(polls) > 5

    driver.wait = stop_later
    figures = loop.run()
    assert (figures.queued, figures.running, figures.broken) == (2, 0, 0)
    assert loop.controller.studies[0].seconds() == 0.0


def test_queue_ahead_submits_more_than_run(make_loop) -> None:
    driver = FakeQueue({i: ["stay"] for i in range(1, 9)})
    loop = make_loop(driver, finished=8, concurrent=3, queue_ahead=2)
    driver.wait = lambda jobs, timeout_s: setattr(loop.stop, "requested", True)
    loop.run()
    assert len(driver.folders) == 5


def test_hosts_that_come_back_are_used(make_loop, monkeypatch) -> None:
    monkeypatch.setattr(capacity, "_INTERVAL_S", 0.0)
    driver = FakeQueue({i: ["stay"] for i in range(1, 7)})
    monkeypatch.setattr(driver, "capacity", lambda: 2 if len(driver.folders) < 2 else 5)
    loop = make_loop(driver, finished=6, concurrent=2, follows_capacity=True)
    driver.wait = lambda jobs, timeout_s: setattr(loop.stop, "requested", len(driver.folders) > 2)
    loop.run()
    assert len(driver.folders) == 5
    assert [line for line in loop.observer.lines if re.search(r"\b5\b.*\btrials\b", line)]


def test_a_queue_that_answers_again_is_asked_for_its_room_at_once(make_loop) -> None:
    """Its hosts report later: a smaller number at first is not taken over."""
    driver = FakeQueue({i: ["stay"] for i in range(1, 9)})
    rooms = itertools.chain([1, 1], itertools.repeat(5))
    driver.capacity = lambda: next(rooms)
    loop = make_loop(driver, finished=8, concurrent=2, follows_capacity=True)
    waits = []

    def wait(jobs: Collection[Job], timeout_s: float) -> None:
        waits.append(1)
        driver.silent_for = int(len(waits) == 2)
        loop.stop.requested = len(waits) > 8

    driver.wait = wait
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity, "_RECOVERY_S", (0.0, 1000.0))
        loop.run()
    assert len(driver.folders) == 5
    assert not [line for line in loop.observer.lines if re.search(r"\b1\b.*\btrials\b", line)]


@pytest.mark.parametrize("first", [1, 2])
def test_a_search_that_starts_before_its_hosts_report_uses_them_soon(make_loop, first: int) -> None:
    driver = FakeQueue({i: ["stay"] for i in range(1, 9)})
    driver.capacity = lambda: 5
    now = [1000.0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capacity.time, "monotonic", lambda: now[0])
        loop = make_loop(driver, finished=8, concurrent=first, follows_capacity=True)

        def wait(jobs: Collection[Job], timeout_s: float) -> None:
            now[0] += 1.0
            loop.stop.requested = now[0] > 1012

        driver.wait = wait
        loop.run()
    assert len(driver.folders) == 5


def test_an_impossible_search_ends_with_the_reason_and_without_jobs(make_loop) -> None:
    driver = FakeQueue(queued=10**6)
    driver.blocked = lambda: "no host has 3 GPUs" if driver.polls else ""
    with pytest.raises(CannotStart, match="3 GPUs") as error:
        make_loop(driver, finished=2, concurrent=2).run()
    assert "--wait" in error.value.fix
    assert len(set(driver.cancelled)) == 2


def test_wait_stays_with_an_impossible_search(make_loop) -> None:
    driver = FakeQueue(queued=3)
    driver.blocked = lambda: "no host has 3 GPUs"
    assert make_loop(driver, finished=2, waits=True).run().complete == 2


def test_a_full_queue_is_retried(make_loop, monkeypatch) -> None:
    monkeypatch.setattr(controller, "_REFUSED_S", 0.0)
    driver = FakeQueue()
    accept, refusals = driver.submit, iter([False, True, False])

    def submit(request: JobRequest) -> Job:
        if next(refusals, True):
            return accept(request)
        raise QueueFull("only 1 jobs are allowed per user")

    driver.submit = submit
    loop = make_loop(driver, finished=3)
    assert loop.run().complete == 3
    assert len([line for line in loop.observer.lines if "only 1 jobs" in line]) == 1


def test_a_silent_queue_changes_nothing_and_is_asked_again(make_loop) -> None:
    driver = FakeQueue()
    loop = make_loop(driver, finished=3)
    plain = driver.wait

    def fall_silent(jobs: Collection[Job], timeout_s: float) -> None:
        plain(jobs, timeout_s)
        if len(driver.folders) == 2 and not loop.controller._noted:
            loop.controller._noted.add("silent")
            driver.silent_for = 5

    driver.wait = fall_silent
    assert loop.run().complete == 3
    assert [trial.lost for trial in loop.study.trials()] == [0, 0, 0]
    notes = [line for line in loop.observer.lines if not re.match("submitted|started", line)]
    assert len(notes) == 2, "one when the queue stops answering, one when it answers"
    assert notes[0].startswith("no answer\n")


def test_a_trial_that_could_not_be_submitted_is_submitted_later(make_loop) -> None:
    driver = FakeQueue()
    loop = make_loop(driver, finished=3)
    submit = driver.submit
    fails = [False, True, True, False, False]

    def refuse(request: JobRequest) -> Job:
        if fails and fails.pop(0):
            raise DriverUnreachable("no answer")
        return submit(request)

    driver.submit = refuse
    assert loop.run().complete == 3
    assert [trial.id for trial in loop.study.trials()] == [1, 2, 3], "no trial was dropped"


def test_a_queue_that_lists_jobs_but_accepts_none_answers_again_once(make_loop) -> None:
    driver = FakeQueue()
    loop = make_loop(driver, finished=3)
    submit, fails = driver.submit, [False, True, True, True]

    def refuse(request: JobRequest) -> Job:
        if fails and fails.pop(0):
            raise DriverUnreachable("no answer")
        return submit(request)

    driver.submit = refuse
    assert loop.run().complete == 3
    notes = [line for line in loop.observer.lines if not re.match("submitted|started", line)]
    assert len(notes) == 2, notes


def test_a_queue_that_never_answered_ends_the_search_at_once(make_loop) -> None:
    driver = FakeQueue()
    driver.silent_for = 10**6
    with pytest.raises(DriverUnreachable):
        make_loop(driver).run()


def test_ctrl_c_leaves_the_jobs_and_the_next_run_adopts_them(make_loop) -> None:
    driver = FakeQueue({1: ["stay"], 2: ["stay"]})
    loop = make_loop(driver, finished=2, concurrent=2)
    driver.wait = lambda jobs, timeout_s: setattr(loop.stop, "requested", True)
    loop.run()
    assert not driver.cancelled
    assert re.search(r"\b2 trials\b.*: 1, 2\..*--cancel\b", loop.observer.lines[-1])
    del driver.wait
    driver.outcomes.clear()
    assert make_loop(driver, finished=2).run().complete == 2
    assert len(driver.folders) == 2


def test_an_end_that_would_come_again_breaks_the_trial_without_a_retry(make_loop) -> None:
    driver = FakeQueue({1: [None]})
    driver.how = JobEnd("timed out", again=False)
    loop = make_loop(driver, finished=1)
    loop.run()
    first = loop.study.trials()[0]
    assert (first.reason, first.lost) == ("timed out", 0)


def test_notices_of_the_driver_are_told(make_loop) -> None:
    driver = FakeQueue()
    notices = [["job 1 is held"]]
    driver.notices = lambda: notices.pop() if notices else []
    loop = make_loop(driver, finished=1)
    loop.run()
    assert "job 1 is held" in loop.observer.lines


@pytest.fixture
def search(make_loop, monkeypatch):
    """Return a function that runs the search of the command and returns what it prints.

    Its attempts fail with the errors of the arguments. The first attempt begins, and no file is
    opened.
    """

    def search(*errors: Exception) -> list[str]:
        printed: list[str] = []
        left = list(errors)

        @contextmanager
        def sessions(*args: object, **kwargs: object) -> Iterator[list[object]]:
            if left and isinstance(left[0], NotWritable):
                raise left.pop(0)
            yield []

        def once(*args: object) -> None:
            if left:
                raise left.pop(0)

        monkeypatch.setattr(run_search, "run_sessions", sessions)
        monkeypatch.setattr(run_search, "_search_once", once)
        monkeypatch.setattr(run_search, "greet", lambda *args: None)
        monkeypatch.setattr(run_search, "_RETRY_S", 0.0)
        console = SimpleNamespace(print=lambda text, markup: printed.append(text.splitlines()[0]))
        monkeypatch.setattr(run_search, "make_console", lambda: console)
        options = SimpleNamespace(storage=None)
        experiment = SimpleNamespace(directory=Path(), learn_from=())
        run_search._search(experiment, FakeQueue(), options, follows_capacity=False)
        assert not left
        return printed

    return search


def test_after_a_failure_of_the_disk_all_is_opened_again_until_it_works(search) -> None:
    disk, shut = StorageError("disk I/O error"), NotWritable("cannot write in /x")
    silent = DriverUnreachable("no answer")
    assert search(disk, shut, shut, silent, OSError(errno.ESTALE, "stale")) == [
        "disk I/O error",
        "cannot write in /x",  # once
        "no answer",
        "[Errno 116] stale",
    ]


def test_a_silent_queue_at_the_start_ends_the_command(search) -> None:
    with pytest.raises(DriverUnreachable):
        search(DriverUnreachable("no answer"))
    with pytest.raises(NotWritable):
        search(NotWritable("cannot write in /x"))
