"""The last listing of a queue's jobs, with a limit on how often the queue is asked."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spearmint.drivers.queue import Queue, QueueJob

_LOAD = 50  # listing takes at most 1 / 50 of the time


class QueueListing:
    """The last answer of :meth:`~spearmint.drivers.queue.Queue.jobs`, for all trials.

    Attributes:
        jobs: Jobs by id.
        asked: ``time.monotonic`` at the start of the call.
        cost_s: Duration of the call in seconds.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.jobs: Mapping[str, QueueJob] = {}
        self.asked, self.cost_s = float("-inf"), 0.0

    @property
    def age_s(self) -> float:
        """Seconds since the call."""
        return time.monotonic() - self.asked

    def is_due(self, polling_s: float) -> bool:
        """Return whether to list again, after ``polling_s`` s or later if listing is slow."""
        return self.age_s >= max(polling_s, _LOAD * self.cost_s)

    def expire(self) -> None:
        """Make a new listing due, after a change."""
        self.asked = float("-inf")

    def refresh(self) -> None:
        """List the jobs. If that fails, keep the last listing and raise DriverUnreachable."""
        began = time.monotonic()
        self.jobs = {job.id: job for job in self._queue.jobs()}
        self.asked, self.cost_s = began, time.monotonic() - began
