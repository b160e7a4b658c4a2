"""The jobs of a queue as last listed, asked for no more often than the queue can bear."""

from __future__ import annotations

import time
from collections.abc import Mapping

from spearmint.drivers.queue import Queue, QueueJob

_LOAD = 50  # listing takes at most this share of the time: 1 / 50


class QueueListing:
    """One answer of :meth:`~spearmint.drivers.queue.Queue.jobs` serves all trials.

    Attributes:
        jobs: By id.
        asked: Clock, ``time.monotonic``, when the answer was asked for.
        cost_s: Seconds that it took.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.jobs: Mapping[str, QueueJob] = {}
        self.asked, self.cost_s = float("-inf"), 0.0

    @property
    def age_s(self) -> float:
        """Seconds since it was asked for."""
        return time.monotonic() - self.asked

    def is_due(self, polling_s: float) -> bool:
        """Tell whether ``polling_s`` seconds have passed, and the queue may be asked again."""
        return self.age_s >= max(polling_s, _LOAD * self.cost_s)

    def expire(self) -> None:
        """Make the listing due: something has changed."""
        self.asked = float("-inf")

    def refresh(self) -> None:
        """List again. Raises DriverUnreachable, and keeps what is known, when that fails."""
        began = time.monotonic()
        self.jobs = {job.id: job for job in self._queue.jobs()}
        self.asked, self.cost_s = began, time.monotonic() - began
