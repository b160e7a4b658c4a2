"""Run trials as processes of this machine."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from typing import ClassVar

from spearmint.drivers import processes
from spearmint.drivers.base import Driver, Job, JobRequest, JobState
from spearmint.errors import DriverError
from spearmint.languages import signal_name
from spearmint.layout import TrialFolder, read_json
from spearmint.reporting import TRIAL_DIR
from spearmint.runner import LOCK_FD

_START_GRACE_S = 10.0
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class LocalDriver(Driver):
    """Run each trial in a process group of its own; it outlives the controller.

    The trial's lock is taken before the process starts and inherited by it, so that no instant
    exists at which a started trial cannot be seen.
    """

    name: ClassVar[str] = "local"

    def __init__(self, *, max_concurrent: int = 1) -> None:
        self._threads = max(1, (os.cpu_count() or 1) // max_concurrent)
        self._children: dict[Job, subprocess.Popen[bytes]] = {}
        self._folders: dict[Job, TrialFolder] = {}

    def submit(self, request: JobRequest) -> Job:
        """Start the runner; its output goes to the end of ``request.output``."""
        try:
            lock = os.open(request.folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _cannot_start(error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with request.output.open("ab") as output:
                child = subprocess.Popen(
                    [sys.executable, "-P", "-m", "spearmint.runner", str(request.folder.path)],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=request.directory,
                    env=self._environment(request.folder, lock),
                    pass_fds=(lock,),
                    start_new_session=True,
                )
        except OSError as error:
            raise _cannot_start(error) from error
        finally:
            os.close(lock)
        job = Job(self.name, processes.identity(child.pid) or f"{child.pid}@gone")
        self._children[job] = child
        self._folders[job] = request.folder
        return job

    def _environment(self, folder: TrialFolder, lock: int) -> dict[str, str]:
        threads = {name: str(self._threads) for name in _THREADS if name not in os.environ}
        return {
            **os.environ,
            **threads,
            "PYTHONUNBUFFERED": "1",
            "PYTHONFAULTHANDLER": "1",
            TRIAL_DIR: str(folder.path),
            LOCK_FD: str(lock),
        }

    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the runner that still lives in ``folder``; end what a dead one left."""
        deadline = time.monotonic() + _START_GRACE_S
        while _is_locked(folder):
            runner = read_json(folder.runner)
            identity = processes.identity(runner["pid"]) if runner is not None else None
            if identity is not None and processes.of_trial(folder.path):
                job = Job(self.name, identity)
                self._folders[job] = folder
                return job
            if runner is not None or time.monotonic() > deadline:
                break  # the runner is dead; what it forked still holds the lock
            time.sleep(0.01)
        processes.kill_all_of([folder.path])
        return None

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return ALIVE while the runner process lives."""
        return {job: self._state(job) for job in jobs}

    def _state(self, job: Job) -> JobState:
        child = self._children.get(job)
        alive = child.poll() is None if child is not None else processes.is_alive(job.id)
        return JobState.ALIVE if alive else JobState.GONE

    def cancel(self, jobs: Collection[Job]) -> None:
        """End the processes of ``jobs``: TERM, and KILL 5 s later."""
        processes.kill_all_of([self._folders[job].path for job in jobs])
        for job in jobs:
            if child := self._children.get(job):
                child.wait()

    def explain(self, job: Job) -> str:
        """Return the signal or exit status of the runner."""
        child = self._children.get(job)
        status = child.returncode if child is not None else None
        if status is None:
            return "its process ended without a result"
        if status < 0:
            return f"killed by signal {-status} ({signal_name(-status)})"
        return f"exited with status {status} before main returned"

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return as soon as one of the processes ends."""
        processes.wait_for_end([processes.pid_of(job.id) for job in jobs], timeout_s)


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


def _cannot_start(error: OSError) -> DriverError:
    return DriverError(
        f"a trial could not be started: {error}",
        "Mend this, then run the same command: finished trials are safe.",
    )
