"""The rules of :class:`~spearmint.drivers.base.Driver` as tests that every driver must pass."""

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

    The processes of trials must run on this machine, because the tests look for them and kill them.
    """

    @abstractmethod
    def make_driver(self, directory: Path) -> Driver:
        """Return a new driver for the experiment in ``directory``; each run creates one."""

    def test_a_job_runs_and_is_gone_with_its_result(self, tmp_path: Path) -> None:
        """The last state is GONE; the result and the output are then complete."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        job = driver.submit(request)
        expect(set(driver.poll([job])) == {job}, "poll must return the state of each job")
        until_gone(driver, job)
        expect(value_of(request) == 0.5, "the result of a job that is GONE must be final")
        expect("hello" in request.output.read_text(), "the output must contain what main printed")

    def test_wait_returns_when_a_job_ends(self, tmp_path: Path) -> None:
        """``wait`` returns long before its timeout if a result arrives."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        job = driver.submit(request)
        waits = 0
        while driver.poll([job])[job] in (JobState.WAITING, JobState.ALIVE):
            driver.wait([job], 60)
            waits += 1
            expect(waits < 10_000, "the job must end")
        expect(request.folder.result.exists(), "a job that ended must have a result")

    def test_cancel_ends_the_job_and_what_it_started(self, tmp_path: Path) -> None:
        """``cancel`` returns when the job and all its processes have ended."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PARENT)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        child = child_of(tmp_path)
        driver.cancel([job])
        expect(driver.poll([job])[job] is JobState.GONE, "a cancelled job must be GONE")
        expect(identity(child) is None, "a cancelled job must leave no process")
        expect(not request.folder.result.exists(), "a cancelled trial must not have a result")

    def test_end_ends_the_job_within_some_polls(self, tmp_path: Path) -> None:
        """``end`` does not wait, so an unreachable host cannot block the caller."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, SLOW)
        job = driver.submit(request)
        poll_until(driver, job, request.folder.runner)
        driver.end([job])
        until_gone(driver, job)

    def test_another_driver_adopts_a_running_job(self, tmp_path: Path) -> None:
        """The next run of the command can adopt the job and cancel it."""
        request = make_request(tmp_path, SLOW)
        owner, heir = self.make_driver(tmp_path), self.make_driver(tmp_path)
        first = owner.submit(request)
        job = heir.adopt(request.folder)
        if job is None:
            pytest.fail("a running job must be adopted")
        state = heir.poll([job])[job]
        expect(state in (JobState.WAITING, JobState.ALIVE), "an adopted job must not be GONE")
        heir.cancel([job])
        expect(heir.poll([job])[job] is JobState.GONE, "cancel must work for an adopted job")
        until_gone(owner, first)

    def test_a_controller_killed_after_submit_leaves_its_job(self, tmp_path: Path) -> None:
        """The job of a killed controller continues, and the next controller adopts it."""
        request = make_request(tmp_path, PATIENT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # about a fork with threads
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
            pytest.fail("the job of a killed controller must be adopted")
        (tmp_path / "go").touch()
        until_gone(heir, job)
        expect(value_of(request) == 0.5, "the trial of a killed controller must have a result")

    def test_nothing_is_adopted_where_nothing_runs(self, tmp_path: Path) -> None:
        """``adopt`` returns None before a submission and after the job has ended."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        expect(driver.adopt(request.folder) is None, "adopt must return None before submit")
        job = driver.submit(request)
        until_gone(driver, job)
        expect(driver.adopt(request.folder) is None, "adopt must return None after the end")

    def test_a_killed_job_is_gone_and_explained(self, tmp_path: Path) -> None:
        """A trial whose process was killed leaves no process and can be rerun."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PARENT)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "child.pid")
        child = child_of(tmp_path)
        poll_until(driver, job, request.folder.runner)
        os.kill(int(json.loads(request.folder.runner.read_text())["pid"]), signal.SIGKILL)
        until_gone(driver, job)
        self.check_explanation(driver.explain(job).text)
        expect(driver.adopt(request.folder) is None, "a killed job must not be adopted")
        expect(identity(child) is None, "a killed job must leave no process")
        retried = driver.submit(request)
        expect(driver.poll([retried])[retried] is not JobState.GONE, "a retry must start")
        driver.cancel([retried])

    def check_explanation(self, text: str) -> None:
        """Check the explanation for a trial whose process was killed by SIGKILL."""
        expect("SIGKILL" in text, f"the explanation must name the signal: {text}")

    def test_a_process_that_got_the_number_of_a_runner_is_not_touched(self, tmp_path: Path) -> None:
        """Process ids are reused; the start time identifies an unrelated process."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        with subprocess.Popen(["sleep", "60"]) as stranger, request.folder.lock.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # like a process that an exited runner forked
            left = {"pid": stranger.pid, "start": time.time() - 3600}
            write_json(request.folder.runner, left)
            expect(driver.adopt(request.folder) is None, "an unrelated process is not adopted")
            expect(stranger.poll() is None, "an unrelated process is not terminated")
            stranger.kill()

    def test_what_a_finished_job_left_is_ended_by_cancel(self, tmp_path: Path) -> None:
        """``cancel`` of a job that is GONE ends its leftover processes and keeps the result."""
        code = PARENT.replace("time.sleep(600)", "return 0.5")
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, code)
        job = driver.submit(request)
        until_gone(driver, job)
        child = child_of(tmp_path)
        driver.cancel([job])
        expect(identity(child) is None, "cancel must end leftover processes of a finished job")
        expect(value_of(request) == 0.5, "cancel must keep the result of a finished job")

    def test_a_job_that_ignores_sigterm_is_killed(self, tmp_path: Path) -> None:
        """``cancel`` kills a trial that does not react to SIGTERM."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, DEAF)
        job = driver.submit(request)
        poll_until(driver, job, tmp_path / "deaf")
        driver.cancel([job])
        expect(driver.poll([job])[job] is JobState.GONE, "a job that ignores SIGTERM is killed")

    def test_a_folder_runs_once_at_a_time(self, tmp_path: Path) -> None:
        """A second submission is refused until the first job has ended."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, SLOW)
        job = driver.submit(request)
        with pytest.raises(DriverError):
            driver.submit(request)
        driver.cancel([job])

    def test_a_trial_starts_once(self, tmp_path: Path) -> None:
        """Polling and adopting do not start a trial a second time."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, COUNTED)
        job = driver.submit(request)
        self.make_driver(tmp_path).adopt(request.folder)
        until_gone(driver, job)
        expect((tmp_path / "starts").read_text() == "x", "a trial must start once")

    def test_a_preview_names_the_runner_and_starts_nothing(self, tmp_path: Path) -> None:
        """``--dry-run`` shows the preview."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, QUICK)
        expect("spearmint.trial." in driver.preview(request), "preview must show the command")
        expect(driver.adopt(request.folder) is None, "preview must not submit a job")
        expect(driver.capacity() >= 1, "capacity must be at least 1")


class QueueContract(DriverContract):
    """Further rules, for drivers whose queue a test can make unreachable."""

    @abstractmethod
    def silence(self, driver: Driver) -> AbstractContextManager[None]:
        """Return a context in which the queue of ``driver`` does not answer."""

    def test_a_queue_that_does_not_answer_changes_nothing(self, tmp_path: Path) -> None:
        """``poll`` raises DriverUnreachable, and the job continues."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, PATIENT)
        job = driver.submit(request)
        poll_until(driver, job, request.folder.runner)
        with self.silence(driver), pytest.raises(DriverUnreachable):
            until_gone(driver, job)
        state = driver.poll([job])[job]
        expect(state in (JobState.WAITING, JobState.ALIVE), "the job must keep its state")
        (tmp_path / "go").touch()
        until_gone(driver, job)
        expect(value_of(request) == 0.5, "the trial must continue")

    def test_a_submission_without_an_answer_can_be_repeated(self, tmp_path: Path) -> None:
        """``submit`` raises DriverUnreachable; a later ``submit`` of the trial starts it once."""
        driver, request = self.make_driver(tmp_path), make_request(tmp_path, COUNTED)
        with self.silence(driver), pytest.raises(DriverUnreachable):
            driver.submit(request)
        job = submit_again(driver, request)
        until_gone(driver, job)
        expect((tmp_path / "starts").read_text() == "x", "the trial must start once")
