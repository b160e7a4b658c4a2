"""Jobs whose trials are stored, until they are over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.drivers import Driver, Job, JobState

EXIT_GRACE_S = 30.0
"""Seconds that a job may live on after its result stands."""


@dataclass(slots=True)
class Leaving:
    """Jobs that have nothing left to do but to end."""

    driver: Driver
    _since: dict[Job, float] = field(default_factory=dict)

    @property
    def jobs(self) -> list[Job]:
        """Those that may not be over yet."""
        return list(self._since)

    def add(self, job: Job) -> None:
        """Look after ``job``, whose trial was just stored."""
        self._since[job] = time.time()

    def clear(self) -> None:
        """Forget all of them."""
        self._since.clear()

    def see_off(self, states: Mapping[Job, JobState]) -> None:
        """Forget the jobs that are over; end those that stay, and forget them too.

        One that cannot be ended, for its host is lost, must not hold up the search: the driver
        tells people of it.
        """
        now = time.time()
        over = [job for job in self._since if states.get(job) is JobState.GONE]
        stay = [job for job in self._since if now - self._since[job] > EXIT_GRACE_S]
        stay = [job for job in stay if job not in over]
        if over:
            self.driver.cancel(over)  # what their runners left behind
        if stay:
            self.driver.end(stay)
        for job in (*over, *stay):
            del self._since[job]
