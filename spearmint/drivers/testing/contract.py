"""The rules of :class:`~spearmint.drivers.base.Driver` as tests; every driver passes them."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
import warnings
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from spearmint.drivers.base import Driver, JobState
from spearmint.drivers.processes import identity
from spearmint.drivers.testing.trials import (
    COUNTED,
    DEAF,
    PARENT,
    PATIENT,
    QUICK,
    SLOW,
    child_of,
    expect,
    make_request,
    poll_until,
    submit_again,
    until_gone,
    value_of,
)
from spearmint.errors import DriverError, DriverUnreachable
from spearmint.layout import write_json


class DriverContract(ABC):
    """Subclass it as ``Test...`` with a :meth:`make_driver`; pytest then checks every rule.

    The processes of trials must run on this machine, where the tests see and kill them.
    """

    @abstractmethod
    def make_driver(self, directory: Path) -> Driver:
        """Return a new driver, as each run of the command makes one, of this experiment."""

    def test_a_job_runs_and_is_gone_with_its_result(self, tmp_path: Path) -> None:
        """The states end in GONE; then result and output are complete."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        job = driver.submit(request)
        expect(set(driver.poll([job])) == {job}, "poll returns the state of each job")
        until_gone(driver, job)
        expect(value_of(request) == 0.5, "the result of a job that is gone is final")
        expect("hello" in request.output.read_text(), "what a trial prints is in its output")

    def test_wait_returns_when_a_job_ends(self, tmp_path: Path) -> None:
        """A result is noticed long before the time-out."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        job = driver.submit(request)
        waits = 0
        while driver.poll([job])[job] in (JobState.WAITING, JobState.ALIVE):
            driver.wait([job], 60)
            waits += 1
            expect(waits < 10_000, "the job ends")
        expect(request.folder.result.exists(), "a job that ended has a result")

    def test_cancel_ends_the_job_and_what_it_started(self, tmp_path: Path) -> None:
        """Cancel returns when the job and all its processes are over."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PARENT)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        child = child_of(tmp_path)
        driver.cancel([job])
        expect(driver.poll([job])[job] is JobState.GONE, "a cancelled job is gone")
        expect(identity(child) is None, "no process of a cancelled job is left")
        expect(not request.folder.result.exists(), "a cancelled trial has no result")

    def test_end_ends_the_job_within_some_polls(self, tmp_path: Path) -> None:
        """End asks only, so a lost host cannot hold up the caller."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, SLOW)
        job = driver.submit(request)
        poll_until(driver, job, request.folder.runner)
        driver.end([job])
        until_gone(driver, job)

    def test_another_driver_adopts_a_running_job(self, tmp_path: Path) -> None:
        """The next run of the command finds the job and can cancel it."""
        request = make_request(tmp_path, SLOW)
        owner, heir = self.make_driver(tmp_path), self.make_driver(tmp_path)
        first = owner.submit(request)
        job = heir.adopt(request.folder)
        if job is None:
            pytest.fail("a running job is adopted")
        state = heir.poll([job])[job]
        expect(state in (JobState.WAITING, JobState.ALIVE), "an adopted job is not over")
        heir.cancel([job])
        expect(heir.poll([job])[job] is JobState.GONE, "an adopted job can be cancelled")
        until_gone(owner, first)

    def test_a_controller_killed_after_submit_leaves_its_job(self, tmp_path: Path) -> None:
        """The job of a controller that was killed runs to its end, and the next one finds it."""
        request = make_request(tmp_path, PATIENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads
            controller = os.fork()
        if controller == 0:
            try:
                self.make_driver(tmp_path).submit(request)
            finally:
                os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(controller, 0)
        heir = self.make_driver(tmp_path)
        job = heir.adopt(request.folder)
        if job is None:
            pytest.fail("the job of a killed controller is adopted")
        (tmp_path / "go").touch()
        until_gone(heir, job)
        expect(value_of(request) == 0.5, "the trial of a killed controller has its result")

    def test_nothing_is_adopted_where_nothing_runs(self, tmp_path: Path) -> None:
        """Neither before a submission nor after the end."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        expect(driver.adopt(request.folder) is None, "nothing was submitted")
        job = driver.submit(request)
        until_gone(driver, job)
        expect(driver.adopt(request.folder) is None, "the job is over")

    def test_a_killed_job_is_gone_and_explained(self, tmp_path: Path) -> None:
        """A trial whose process was killed can run again, and nothing of it is left."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PARENT)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        child = child_of(tmp_path)
        os.kill(int(json.loads(request.folder.runner.read_text())["pid"]), signal.SIGKILL)
        until_gone(driver, job)
        self.check_explanation(driver.explain(job).text)
        expect(driver.adopt(request.folder) is None, "a dead job is not adopted")
        expect(identity(child) is None, "what the dead trial started does not go on")
        again = driver.submit(request)
        expect(driver.poll([again])[again] is not JobState.GONE, "the trial runs again")
        driver.cancel([again])

    def check_explanation(self, text: str) -> None:
        """Check the explanation of a trial whose process got SIGKILL."""
        expect("SIGKILL" in text, f"the signal is named: {text}")

    def test_a_process_that_got_the_number_of_a_runner_is_not_touched(self, tmp_path: Path) -> None:
        """Process numbers are used again; the start tells a stranger."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        with subprocess.Popen(["sleep", "60"]) as stranger, request.folder.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as what a dead runner forked would
            left = {"pid": stranger.pid, "start": time.time() - 3600}
            write_json(request.folder.runner, left)
            expect(driver.adopt(request.folder) is None, "a stranger is not adopted")
            expect(stranger.poll() is None, "a stranger is not ended")
            stranger.kill()

    def test_what_a_finished_job_left_is_ended_by_cancel(self, tmp_path: Path) -> None:
        """Cancel of a job that is GONE ends what was left behind, and keeps the result."""
        code = PARENT.replace("time.sleep(60)", "return 0.5")
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, code)
        job = driver.submit(request)
        until_gone(driver, job)
        child = child_of(tmp_path)
        driver.cancel([job])
        expect(identity(child) is None, "cancel ends what a finished job left")
        expect(value_of(request) == 0.5, "the result stays")

    def test_a_job_that_ignores_sigterm_is_killed(self, tmp_path: Path) -> None:
        """Cancel does not depend on the trial's good will."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, DEAF)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "deaf")
        driver.cancel([job])
        expect(driver.poll([job])[job] is JobState.GONE, "a job that ignores SIGTERM is gone")

    def test_a_folder_runs_once_at_a_time(self, tmp_path: Path) -> None:
        """A second submission is refused while the first is not over."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, SLOW)
        job = driver.submit(request)
        with pytest.raises(DriverError):
            driver.submit(request)
        driver.cancel([job])

    def test_a_trial_starts_once(self, tmp_path: Path) -> None:
        """However often it is polled and adopted."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, COUNTED)
        job = driver.submit(request)
        self.make_driver(tmp_path).adopt(request.folder)
        until_gone(driver, job)
        expect((tmp_path / "starts").read_text() == "x", "a trial starts once")

    def test_a_preview_names_the_runner_and_starts_nothing(self, tmp_path: Path) -> None:
        """What ``--dry-run`` shows."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        expect("spearmint.trial." in driver.preview(request), "the command is shown")
        expect(driver.adopt(request.folder) is None, "nothing was submitted")
        expect(driver.capacity() >= 1, "at least one trial runs at once")


class QueueContract(DriverContract):
    """Further rules, for drivers whose queue a test can stop from answering."""

    @abstractmethod
    def silence(self, driver: Driver) -> AbstractContextManager[None]:
        """Return a context in which the queue of ``driver`` does not answer."""

    def test_a_queue_that_does_not_answer_changes_nothing(self, tmp_path: Path) -> None:
        """Poll raises DriverUnreachable, and the job goes on."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PATIENT)
        job = driver.submit(request)
        poll_until(driver, job, request.folder.runner)
        with self.silence(driver), pytest.raises(DriverUnreachable):
            until_gone(driver, job)
        state = driver.poll([job])[job]
        expect(state in (JobState.WAITING, JobState.ALIVE), "silence says nothing of a job")
        (tmp_path / "go").touch()
        until_gone(driver, job)
        expect(value_of(request) == 0.5, "the trial went on")

    def test_a_submission_without_an_answer_can_be_repeated(self, tmp_path: Path) -> None:
        """It raises DriverUnreachable; the same trial is submitted later and starts once."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, COUNTED)
        with self.silence(driver), pytest.raises(DriverUnreachable):
            driver.submit(request)
        job = submit_again(driver, request)
        until_gone(driver, job)
        expect((tmp_path / "starts").read_text() == "x", "the trial starts once")
