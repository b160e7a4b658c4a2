"""One call of a function that runs as a job."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

from spearmint.drivers import Job
from spearmint.errors import SpearmintError


class TaskFailed(SpearmintError):
    """A task ended without a value, and without an exception that could be transferred."""


class Task(Future[Any]):
    """A future whose value comes from a job.

    ``cancel`` also terminates a task that already runs.

    Attributes:
        id: Number of the task in its directory, from 1.
        name: Name of the function.
        output: File with its standard output and error.
        job: Its job; None before the first submission and after its end.
        lost: How often its job ended without a result.
    """

    def __init__(self, id: int, name: str, key: str, output: Path, *, lost: int = 0) -> None:
        super().__init__()
        self.id, self.name, self.output = id, name, output
        self.key, self.lost = key, lost
        self.job: Job | None = None
        self.is_alive = False

    def running(self) -> bool:
        """Return whether the function runs now."""
        return self.is_alive and not self.done()

    def __repr__(self) -> str:
        state = "running" if self.running() else "waiting"
        if self.done():
            state = "cancelled" if self.cancelled() else "failed" if self.exception() else "done"
        return f"Task(id={self.id}, name={self.name!r}, {state})"

    def finish(self, value: Any) -> None:
        """Set the value, unless the task was cancelled."""
        if self.set_running_or_notify_cancel():
            self.set_result(value)

    def fail(self, error: BaseException) -> None:
        """Set the exception, unless the task was cancelled."""
        if self.set_running_or_notify_cancel():
            self.set_exception(error)
