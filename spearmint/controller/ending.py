"""Jobs that still run after the results of their trials are stored."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from spearmint.drivers import Driver, Job, JobState

EXIT_GRACE_S = 30.0
"""Timeout in seconds between the result of a job and its exit."""


@dataclass(slots=True)
class EndingJobs:
    """Jobs that have written their result and only have to exit."""

    driver: Driver
    _since: dict[Job, float] = field(default_factory=dict)
    _trials: dict[Job, int] = field(default_factory=dict)
    _stuck: set[int] = field(default_factory=set)

    @property
    def jobs(self) -> list[Job]:
        """Jobs that have not ended, as far as known."""
        return list(self._since)

    @property
    def trials(self) -> set[int]:
        """Trials of these jobs, and of those that exceeded the timeout and possibly still run."""
        return {*(self._trials[job] for job in self._since), *self._stuck}

    def add(self, job: Job, trial_id: int) -> None:
        """Watch ``job`` of a trial, whose result is stored, until it ends."""
        self._since[job], self._trials[job] = time.time(), trial_id

    def clear(self) -> None:
        """Stop watching all jobs."""
        self._since.clear()

    def reap(self, states: Mapping[Job, JobState]) -> None:
        """Stop watching jobs that have ended; terminate jobs that exceed the timeout.

        A job on a lost host cannot be terminated and must not block the search. The driver reports
        it.
        """
        now = time.time()
        over = [job for job in self._since if states.get(job) is JobState.GONE]
        stuck = [job for job in self._since if now - self._since[job] > EXIT_GRACE_S]
        stuck = [job for job in stuck if job not in over]
        if over:
            self.driver.cancel(over)  # terminates leftover processes
        if stuck:
            self.driver.end(stuck)
            self._stuck.update(self._trials[job] for job in stuck)
        for job in (*over, *stuck):
            del self._since[job]
