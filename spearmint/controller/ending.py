"""Jobs whose trials are stored but which are not over yet."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.drivers import Driver, Job, JobState

EXIT_GRACE_S = 30.0
"""Seconds that a job may take to exit after it wrote its result."""


@dataclass(slots=True)
class EndingJobs:
    """Jobs that wrote their result and have nothing left to do but exit."""

    driver: Driver
    _since: dict[Job, float] = field(default_factory=dict)

    @property
    def jobs(self) -> list[Job]:
        """Those that may not be over yet."""
        return list(self._since)

    def add(self, job: Job) -> None:
        """Watch ``job``, whose trial was just stored, until it is over."""
        self._since[job] = time.time()

    def clear(self) -> None:
        """Forget all of them."""
        self._since.clear()

    def reap(self, states: Mapping[Job, JobState]) -> None:
        """Forget the jobs that are over; end those that overstay, and forget them too.

        A job that cannot be ended because its host is lost must not hold up the search; the driver
        reports it.
        """
        now = time.time()
        over = [job for job in self._since if states.get(job) is JobState.GONE]
        stuck = [job for job in self._since if now - self._since[job] > EXIT_GRACE_S]
        stuck = [job for job in stuck if job not in over]
        if over:
            self.driver.cancel(over)  # processes that their runners started
        if stuck:
            self.driver.end(stuck)
        for job in (*over, *stuck):
            del self._since[job]
