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
from typing import IO

from spearmint.drivers import processes
from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.processes import Family
from spearmint.drivers.warm_starts import WarmStarts
from spearmint.errors import DriverError
from spearmint.layout import TrialFolder
from spearmint.trial.environment import LOCK_FD, REPORTS_FILE, THREADS, TRIAL_DIR
from spearmint.trial.languages import signal_name
from spearmint.trial.warm.client import Started

_START_GRACE_S = 10.0
_REAP_S = 5.0
_CLEAN_S = 12.0  # longer than the keeper of a trial needs to end what the trial left


class LocalDriver(Driver):
    """Run each trial in a separate session, which continues if the controller exits.

    The driver locks the trial before it starts the process, which inherits the lock. Another
    controller can therefore always see that the trial runs.
    """

    name = "local"

    def __init__(self, settings: DriverSettings) -> None:
        self._threads = max(1, usable_cores() // settings.max_concurrent)
        self._children: dict[Job, subprocess.Popen[bytes]] = {}
        self._warm, self._forked = WarmStarts(), dict[Job, Started]()
        self._families: dict[Job, Family] = {}
        if settings.module:
            self._warm.begin(settings.directory, settings.module, self._shared())

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
                job = self._fork(folder, lock, output) or self._spawn(request, lock, output)
        except TimeoutError:
            os.close(lock)
            return self.adopt(folder) or self.submit(request)
        except BlockingIOError:
            os.close(lock)
            raise _cannot_start(f"another process is running {folder.path}") from None
        except OSError as error:
            os.close(lock)
            raise _cannot_start(str(error)) from error
        os.close(lock)
        self._families[job] = Family(job.id, folder.files)
        return job

    def _fork(self, folder: TrialFolder, lock: int, output: IO[bytes]) -> Job | None:
        """Start a runner from a warm process; return None if it must be a new process."""
        fds = (output.fileno(), lock)
        started = self._warm.start(folder, self._environment(folder), self._shared(), fds)
        if started is None:
            return None
        job = _job(self.name, started.pid)
        self._forked[job] = started
        return job

    def _spawn(self, request: JobRequest, lock: int, output: IO[bytes]) -> Job:
        """Start a runner as a new process."""
        child = subprocess.Popen(
            _argv(request.folder),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=request.directory,
            env={**self._environment(request.folder), LOCK_FD: str(lock)},
            pass_fds=(lock,),
            start_new_session=True,
        )
        job = _job(self.name, child.pid)
        self._children[job] = child
        return job

    def _shared(self) -> dict[str, str]:
        """Return the environment variables that all trials have in common."""
        threads = dict.fromkeys(THREADS, str(self._threads))
        if THREADS[0] in os.environ:  # OpenBLAS and MKL obey it, too, unless theirs are set
            threads = {}
        return {**threads, **os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}

    def _environment(self, folder: TrialFolder) -> dict[str, str]:
        return {
            **self._shared(),
            TRIAL_DIR: str(folder.files),
            REPORTS_FILE: str(folder.reports),
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

    def has_job(self, folder: TrialFolder) -> bool:
        """Return whether the runner of ``folder`` runs."""
        return _is_locked(folder) and processes.runner_identity(folder) is not None

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return ALIVE while the runner process exists."""
        return {job: self._state(job) for job in jobs}

    def _state(self, job: Job) -> JobState:
        child = self._children.get(job)
        alive = child.poll() is None if child is not None else processes.is_alive(job.id)
        return JobState.ALIVE if alive else JobState.GONE

    def cancel(self, jobs: Collection[Job]) -> None:
        """Terminate the processes of ``jobs``: SIGTERM, and SIGKILL 5 s later."""
        left = [job for job in jobs if not self._has_ended(job)]
        processes.end_all([self._families[job] for job in left])
        for job in left:
            if started := self._forked.get(job):
                started.is_clean(_CLEAN_S)
            if child := self._children.get(job):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(_REAP_S)

    def _has_ended(self, job: Job) -> bool:
        """Return whether the keeper of a trial has seen all its processes end."""
        started = self._forked.get(job)
        is_over = started is not None and not processes.is_alive(job.id)
        return is_over and started is not None and started.is_clean(_CLEAN_S)

    def explain(self, job: Job) -> JobEnd:
        """Return the signal or exit status of the runner."""
        child, started = self._children.get(job), self._forked.get(job)
        status = child.returncode if child is not None else None
        if started is not None:
            status = started.returncode()
        if status is None:
            return JobEnd("its process disappeared without a result")
        if status < 0:
            return JobEnd(f"killed by signal {-status} ({signal_name(-status)})")
        return JobEnd(f"exited with status {status} before main returned")

    def preview(self, request: JobRequest) -> str:
        """Return the command with the redirection of its output."""
        return f"{shlex.join(_argv(request.folder))} >> {shlex.quote(str(request.output))} 2>&1"

    def notices(self) -> list[str]:
        """Return why trials start in new processes, once."""
        return self._warm.take()

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return as soon as one of the processes ends."""
        processes.wait_for_end([processes.pid_of(job.id) for job in jobs], timeout_s)


def _job(driver: str, pid: int) -> Job:
    return Job(driver, processes.identity(pid) or f"{pid}@0")


def _argv(folder: TrialFolder) -> list[str]:
    return [sys.executable, "-P", "-m", "spearmint.trial.runner", str(folder.path)]


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
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
