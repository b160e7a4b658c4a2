"""A trial that has a job, from the view of the controller."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from spearmint.drivers import Job
from spearmint.layout import BATCH, TrialFolder, read_json
from spearmint.model import Trial
from spearmint.trial.batch.remote import bring_back

_STUCK_S = 60.0
_NEW_RUNNER_S = 10.0  # the job may have started after the last listing of the queue


@dataclass(slots=True)
class RunningTrial:
    """A trial whose job is queued or runs.

    Attributes:
        trial: The trial as stored.
        folder: Its folder, in which the runner writes.
        job: The job that runs it.
        job_folder: Folder of the job; that of the trial if it is the only one.
        share: Its part of the time of the job now: 1 divided by the number of trials.
        shared_s, shared: Its part of the time until ``shared``, in seconds since the epoch.
        waiting: Whether the job is queued; its time counts from its start.
        started: Start time in seconds since the epoch.
        result_since: When its result was first seen, in seconds since the epoch.
        reports_size: Bytes of its reports that were read.
        ended_by: Why the controller terminated the job: "timeout", "pruned", "stopped" by a user,
            "ended" as it did not exit, or "" if the controller did not terminate it.
        stop_reason: What to store of a stopped trial.
        ended_at: When it terminated the job, in seconds since the epoch.
    """

    trial: Trial
    folder: TrialFolder
    job: Job
    job_folder: TrialFolder
    share: float = 1.0
    waiting: bool = False
    started: float = field(default_factory=time.time)
    result_since: float | None = None
    reports_size: int = 0
    ended_by: str = ""
    stop_reason: str = ""
    ended_at: float = 0.0
    shared_s: float = 0.0
    shared: float = 0.0

    def __post_init__(self) -> None:
        runner = read_json(self.folder.runner)
        if runner is not None:
            self.started = float(runner["start"])

    @property
    def is_in_batch(self) -> bool:
        """Whether its job can have other trials, which continue when this one ends."""
        return self.job_folder != self.folder

    def refresh(self) -> None:
        """Look for what the job of several trials has written: here, or on a host without it.

        Listing a folder makes a network file system show its files.
        """
        if self.is_in_batch:
            with contextlib.suppress(OSError):
                os.listdir(self.folder.path)  # noqa: PTH208 - as often as the driver is polled
                bring_back(self.job_folder, self.trial.id, self.folder)

    def has_new_result(self) -> bool:
        """Return whether it has a result, not seen before, while its job can train others."""
        is_open = self.is_in_batch and self.result_since is None
        return is_open and self.folder.result.exists()

    def charged_s(self) -> float:
        """Return the run time in seconds for which the trial counts."""
        return 0.0 if self.waiting else self.shared_s + self._since_shared(time.time())

    def _since_shared(self, now: float) -> float:
        return max(0.0, now - max(self.started, self.shared)) * self.share

    def divide(self, n_trials: int) -> None:
        """Share the time of the job with others from now on; ``n_trials`` train in it."""
        now = time.time()
        if not self.waiting:
            self.shared_s, self.shared = self.shared_s + self._since_shared(now), now
        self.share = 1.0 / n_trials

    def outlasts_result(self, grace_s: float) -> bool:
        """Return whether the job still runs ``grace_s`` after a result, and was not terminated."""
        is_over = self.result_age() > grace_s and self.job_folder.result.exists()
        return is_over and not self.ended_by

    def result_age(self) -> float:
        """Return for how many seconds its result has been seen; this call can be the first."""
        self.result_since = self.result_since or time.time()
        return time.time() - self.result_since

    def seconds(self) -> float:
        """Return the run time in seconds; 0 while the job is queued."""
        return 0.0 if self.waiting else time.time() - self.started

    def requeue(self) -> None:
        """Note that the job is queued; delete what the runner of an earlier start has written."""
        if not self.waiting:
            with contextlib.suppress(OSError):
                if time.time() - self.folder.runner.stat().st_mtime > _NEW_RUNNER_S:
                    self.folder.runner.unlink()
                    self.job_folder.runner.unlink(missing_ok=True)
        self.waiting, self.started, self.shared_s = True, time.time(), 0.0

    def is_stuck(self) -> bool:
        """Return whether the controller terminated the job and the host has not confirmed it."""
        return bool(self.ended_by) and time.time() - self.ended_at > _STUCK_S

    def new_reports(self) -> bool:
        """Return whether reports were written since the last call."""
        size = 0
        with contextlib.suppress(OSError):
            size = self.folder.reports.stat().st_size
        changed = size != self.reports_size
        self.reports_size = size
        return changed


def jobs_of(trials: Iterable[RunningTrial]) -> list[Job]:
    """Return the jobs of trials, each once."""
    return list(dict.fromkeys(running.job for running in trials))


def share_in(job_folder: TrialFolder) -> float:
    """Return the part of each trial of a job in its time."""
    return 1.0 / len((read_json(job_folder.spec) or {}).get(BATCH) or [0])


def divide(running: Collection[RunningTrial]) -> Counter[Job]:
    """Charge the time of each job, from now on, to its trials in ``running``; return how many."""
    counts = Counter(each.job for each in running)
    for each in running:
        each.divide(counts[each.job])
    return counts


def ask_to_stop(folder: TrialFolder) -> None:
    """Tell the job of several trials to train this one no more; a full disk loses the request."""
    with contextlib.suppress(OSError):
        folder.stop.touch()
