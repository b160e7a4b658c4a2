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
    _trials: dict[Job, set[int]] = field(default_factory=dict)
    _stuck: set[int] = field(default_factory=set)

    @property
    def jobs(self) -> list[Job]:
        """Jobs that have not ended, as far as known."""
        return list(self._since)

    @property
    def trials(self) -> set[int]:
        """Ended trials of jobs that run, or that exceeded the timeout and possibly still run."""
        return set().union(self._stuck, *self._trials.values())

    def add(self, job: Job, trial_id: int) -> None:
        """Watch ``job`` of a trial, whose result is stored, until it ends."""
        self._since[job] = time.time()
        self.note(job, trial_id)

    def note(self, job: Job, trial_id: int) -> None:
        """Note a trial whose result is stored while its job trains others."""
        self._trials.setdefault(job, set()).add(trial_id)

    def forget(self, job: Job) -> None:
        """Forget the trials of a job that has ended."""
        self._trials.pop(job, None)

    def clear(self) -> None:
        """Stop watching all jobs."""
        self._since.clear()
        self._trials.clear()

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
            self._stuck.update(*(self._trials[job] for job in stuck))
        for job in (*over, *stuck):
            del self._since[job]
            self.forget(job)
