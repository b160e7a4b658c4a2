"""Say of a waiting job that it can never start, and why, without asking the master all the time."""

from __future__ import annotations

import contextlib
import time

from sge_jobs.errors import SgeJobsError
from sge_jobs.queue.queue import Queue

_FIRST_S = 2.0  # a job that can start does so before
_NEXT_S = (5.0, 60.0)  # shortest and longest pause between two checks


class Waiting:
    """What to say of one job while it waits."""

    def __init__(self, queue: Queue, id: str) -> None:
        self._queue, self._id = queue, id
        self._text = ""
        self._due, self._pause_s = time.monotonic() + _FIRST_S, _NEXT_S[0]

    def words(self) -> str:
        """Return why the job cannot start, whatever other jobs do, and the fix; empty if it can."""
        if time.monotonic() >= self._due:
            self._text = self._ask()
            self._due = time.monotonic() + self._pause_s
            self._pause_s = min(2 * self._pause_s, _NEXT_S[1])
        return self._text

    def _ask(self) -> str:
        found = None
        with contextlib.suppress(SgeJobsError):  # without an answer, it may start
            found = self._queue.obstacle(self._id)
        if found is None or found.passes:
            return ""
        return f"Job {self._id} cannot start:\n{found.reason}\n{found.fix}\nCtrl-C deletes the job."
