"""A queue in a directory. It runs its jobs as processes on this machine, and it can fail."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from spearmint.drivers.base import DriverSettings
from spearmint.drivers.processes import identity
from spearmint.drivers.queue import (
    EndedRun,
    Queue,
    QueueHost,
    QueueJob,
    QueueJobState,
    SubmitSpec,
)
from spearmint.drivers.testing.sessions import kill_session, signal_session, start_session
from spearmint.errors import DriverUnreachable
from spearmint.layout import read_json, write_json
from spearmint.resources import Resources

JOB_ID_VARIABLE = "FAKE_JOB"
"""Environment variable with the job id, inside a job."""

HOST = "fakehost"

_STATES = {state.value: state for state in QueueJobState}


class FakeQueue(Queue):
    """A queue whose state is in files: all instances with one directory are the same queue.

    Jobs start in order, at most ``slots`` at a time, each in a separate session. The queue starts
    and ends jobs only during a call. Job ids are not numbers. Tests change the attributes.

    Attributes:
        slots: Number of jobs that run at the same time.
        starts_jobs: Whether jobs start; otherwise they wait for :meth:`set_state`.
        is_silent: Whether every call raises DriverUnreachable.
        loses_answers: Whether ``submit`` accepts the job and then raises DriverUnreachable.
        answer_s: Duration of each call in seconds.
        late_s: Seconds until a new job has an id and is listed, although it can run before. If not
            0, ``submit`` returns None.
        has_accounting: Whether there is accounting; otherwise ``accounting`` returns None.
        known_hosts: Return value of ``hosts``.
        specs: Jobs submitted through this instance, by id.
        cancelled: Ids in calls of ``cancel``, in order.
        listings: Number of answered calls of ``jobs``.
    """

    def __init__(self, settings: DriverSettings) -> None:
        self._directory = settings.directory / ".fake_queue"
        self.slots, self.starts_jobs = 4, True
        self.is_silent = self.loses_answers = False
        self.answer_s = self.late_s = 0.0
        self.has_accounting = True
        self.known_hosts: Sequence[QueueHost] | None = None
        self.specs: dict[str, SubmitSpec] = {}
        self.cancelled: list[str] = []
        self.listings = 0

    # The calls of a queue

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str | None:
        """Write the job into a new directory."""
        self._answer()
        if not inherit:
            raise AssertionError("the submission must inherit the lock")
        self._directory.mkdir(parents=True, exist_ok=True)
        id = self._make_job_directory()
        self.specs[id] = spec
        content = {
            "token": spec.token,
            "argv": list(spec.argv),
            "environment": {**spec.environment, JOB_ID_VARIABLE: id},
            "directory": str(spec.directory),
            "output": str(spec.output),
            "listed": time.time() + self.late_s,
        }
        write_json(self._job(id) / "job.json", content)
        self._schedule()
        if self.loses_answers:
            raise DriverUnreachable("no answer to the submission")
        return None if self.late_s else id

    def _make_job_directory(self) -> str:
        number = 1
        while True:
            with contextlib.suppress(FileExistsError):
                self._job(f"job.{number}").mkdir()
                return f"job.{number}"
            number += 1

    def jobs(self) -> Sequence[QueueJob]:
        """Remove finished jobs, start waiting jobs, and list the rest."""
        self._answer()
        self.listings += 1
        return [self._listed(id) for id in self._schedule() if self._has_id(id)]

    def cancel(self, ids: Collection[str]) -> None:
        """Kill all processes of the jobs; do nothing for jobs of a lost host."""
        self._answer()
        for id in ids:
            self.cancelled.append(id)
            if not (self._job(id) / "lost").exists():
                self._kill(id)
                self.remove(id)

    def hosts(self, need: Resources) -> Sequence[QueueHost] | None:
        """Return ``known_hosts``."""
        self._answer()
        return self.known_hosts

    def accounting(self, id: str) -> Sequence[EndedRun] | None:
        """Return how the job's process ended."""
        self._answer()
        if not self.has_accounting:
            return None
        with contextlib.suppress(FileNotFoundError):
            status = int((self._job(id) / "exit").read_text() or 0)
            return [EndedRun(host=HOST, exit_status=status, signal=max(0, status - 128))]
        return [EndedRun(host=HOST, signal=signal.SIGKILL)] if self._is_over(id) else []

    def reason(self, id: str) -> str:
        """Return the reason given to :meth:`set_state`."""
        with contextlib.suppress(FileNotFoundError):
            return (self._job(id) / "reason").read_text()
        return ""

    # Events of a job

    def set_state(self, id: str, state: QueueJobState, *, reason: str = "") -> None:
        """List the job in ``state`` from now on; stop, continue or kill its processes to match."""
        before = self._listed(id).state
        if state is QueueJobState.SUSPENDED:
            self._signal(id, signal.SIGSTOP)
        elif before is QueueJobState.SUSPENDED:
            self._signal(id, signal.SIGCONT)
        if state in (QueueJobState.PREEMPTED, QueueJobState.PENDING):
            self._kill(id)
            for name in ("pid", "exit", "started"):
                (self._job(id) / name).unlink(missing_ok=True)
        (self._job(id) / "reason").write_text(reason)
        (self._job(id) / "state").write_text(state.value)

    def free(self, id: str) -> None:
        """Release, resume or retry the job, depending on its state."""
        if (self._job(id) / "pid").exists():
            self.set_state(id, QueueJobState.RUNNING)
        (self._job(id) / "state").unlink(missing_ok=True)

    def lose_host(self, id: str) -> None:
        """Kill the job; the queue continues to list it and cannot cancel it."""
        (self._job(id) / "lost").touch()
        (self._job(id) / "state").write_text(QueueJobState.RUNNING.value)
        self._kill(id)

    def find_host(self, id: str) -> None:
        """Make the job of a lost host cancellable again."""
        (self._job(id) / "lost").unlink()

    def remove(self, id: str) -> None:
        """Stop listing the job."""
        (self._job(id) / "over").touch()

    # Internals

    def _answer(self) -> None:
        time.sleep(self.answer_s)
        if self.is_silent:
            raise DriverUnreachable("the queue does not answer", "Start it.")

    def _job(self, id: str) -> Path:
        return self._directory / id

    def _schedule(self) -> list[str]:
        """Remove finished jobs and start waiting jobs; return the remaining jobs in order."""
        found = [path.parent for path in self._directory.glob("job.*/job.json")]
        ids = [path.name for path in sorted(found, key=lambda path: int(path.suffix[1:]))]
        left = [id for id in ids if not (self._is_over(id) or self._reap(id))]
        running = sum((self._job(id) / "pid").exists() for id in left)
        waiting = [id for id in left if self.starts_jobs and self._may_start(id)]
        for id in waiting[: max(0, self.slots - running)]:
            self._start(id)
        return left

    def _read(self, id: str) -> dict[str, Any]:
        return read_json(self._job(id) / "job.json") or {}

    def _has_id(self, id: str) -> bool:
        return bool(self._read(id)["listed"] <= time.time())

    def _is_over(self, id: str) -> bool:
        return (self._job(id) / "over").exists()

    def _listed(self, id: str) -> QueueJob:
        path = self._job(id)
        state = QueueJobState.RUNNING if (path / "pid").exists() else QueueJobState.PENDING
        with contextlib.suppress(FileNotFoundError):
            state = _STATES[(path / "state").read_text()]
        return QueueJob(
            id=id, token=self._read(id)["token"], state=state, text=state.value[:1].upper()
        )

    def _may_start(self, id: str) -> bool:
        path = self._job(id)
        return not any((path / name).exists() for name in ("started", "state"))

    def _start(self, id: str) -> None:
        job = self._read(id)
        (self._job(id) / "started").touch()
        start_session(self._job(id), job)
        while self._pid(id) is None:
            time.sleep(0.001)

    def _reap(self, id: str) -> bool:
        """Return whether the job has ended; kill its leftover processes."""
        path = self._job(id)
        pid = self._pid(id)
        if pid is None or (path / "lost").exists():
            return False
        if (path / "exit").exists() or identity(pid) is None:
            self._kill(id)
            self.remove(id)
            return True
        return False

    def _pid(self, id: str) -> int | None:
        try:
            return int((self._job(id) / "pid").read_text())
        except (FileNotFoundError, ValueError):  # not started yet, or just starting
            return None

    def _signal(self, id: str, number: int) -> None:
        signal_session(self._pid(id), number)

    def _kill(self, id: str) -> None:
        kill_session(self._pid(id))
