"""Run trials as processes on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Collection, Mapping

from spearmint.drivers import processes
from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.processes import Family
from spearmint.errors import DriverError
from spearmint.layout import TrialFolder
from spearmint.trial.environment import LOCK_FD, REPORTS_FILE, THREADS, TRIAL_DIR
from spearmint.trial.languages import signal_name

_START_GRACE_S = 10.0
_REAP_S = 5.0


class LocalDriver(Driver):
    """Run each trial in a separate session, which continues if the controller exits.

    The driver locks the trial before it starts the process, which inherits the lock. Another
    controller can therefore always see that the trial runs.
    """

    name = "local"

    def __init__(self, settings: DriverSettings) -> None:
        self._threads = max(1, _usable_cores() // settings.max_concurrent)
        self._children: dict[Job, subprocess.Popen[bytes]] = {}
        self._families: dict[Job, Family] = {}

    def submit(self, request: JobRequest) -> Job:
        """Start the runner; append its output to ``request.output``."""
        folder = request.folder
        try:
            lock = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _cannot_start(str(error)) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            folder.runner.unlink(missing_ok=True)
            with request.output.open("ab") as output:
                child = subprocess.Popen(
                    _argv(folder),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=request.directory,
                    env=self._environment(folder, lock),
                    pass_fds=(lock,),
                    start_new_session=True,
                )
        except BlockingIOError:
            raise _cannot_start(f"another process is running {folder.path}") from None
        except OSError as error:
            raise _cannot_start(str(error)) from error
        finally:
            os.close(lock)
        job = Job(self.name, processes.identity(child.pid) or f"{child.pid}@0")
        self._children[job] = child
        self._families[job] = Family(job.id, folder.files)
        return job

    def _environment(self, folder: TrialFolder, lock: int) -> dict[str, str]:
        threads = {name: str(self._threads) for name in THREADS if name not in os.environ}
        return {
            **os.environ,
            **threads,
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            TRIAL_DIR: str(folder.files),
            REPORTS_FILE: str(folder.reports),
            LOCK_FD: str(lock),
        }

    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the runner that still runs in ``folder``, or terminate leftover processes."""
        deadline = time.monotonic() + _START_GRACE_S
        while _is_locked(folder):
            runner = processes.runner_identity(folder)
            if runner is not None:
                job = Job(self.name, runner)
                self._families[job] = Family(runner, folder.files)
                return job
            if folder.runner.exists() or time.monotonic() > deadline:
                break  # the runner has exited; a process that it forked still holds the lock
            time.sleep(0.01)
        Family(processes.dead_runner(folder), folder.files).end()
        return None

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return ALIVE while the runner process exists."""
        return {job: self._state(job) for job in jobs}

    def _state(self, job: Job) -> JobState:
        child = self._children.get(job)
        alive = child.poll() is None if child is not None else processes.is_alive(job.id)
        return JobState.ALIVE if alive else JobState.GONE

    def cancel(self, jobs: Collection[Job]) -> None:
        """Terminate the processes of ``jobs``: SIGTERM, and SIGKILL 5 s later."""
        processes.end_all([self._families[job] for job in jobs])
        for job in jobs:
            if child := self._children.get(job):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_REAP_S)

    def explain(self, job: Job) -> JobEnd:
        """Return the signal or exit status of the runner."""
        child = self._children.get(job)
        status = child.returncode if child is not None else None
        if status is None:
            return JobEnd("its process disappeared without a result")
        if status < 0:
            return JobEnd(f"killed by signal {-status} ({signal_name(-status)})")
        return JobEnd(f"exited with status {status} before main returned")

    def preview(self, request: JobRequest) -> str:
        """Return the command with the redirection of its output."""
        return f"{shlex.join(_argv(request.folder))} >> {shlex.quote(str(request.output))} 2>&1"

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return as soon as one of the processes ends."""
        processes.wait_for_end([processes.pid_of(job.id) for job in jobs], timeout_s)


def _argv(folder: TrialFolder) -> list[str]:
    return [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder.path)]


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_locked(folder: TrialFolder) -> bool:
    try:
        fd = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _cannot_start(why: str) -> DriverError:
    return DriverError(
        f"cannot start a trial: {why}",
        "Fix this and rerun the command; finished trials are safe.",
    )
