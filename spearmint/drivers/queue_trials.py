"""Which job of a queue runs each trial: the job submitted for it, or a pilot that claimed it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from spearmint.drivers.base import Job, JobState
from spearmint.drivers.done_files import DoneMarkers
from spearmint.drivers.queue import QueueJobState
from spearmint.drivers.queue_listing import QueueListing
from spearmint.drivers.submission import token_of
from spearmint.layout import TrialFolder
from spearmint.trial.pending import PendingTrials

_NEVER = float("-inf")
_RUNNING = {QueueJobState.RUNNING, QueueJobState.ENDING}
_WAITING = {
    QueueJobState.PENDING,
    QueueJobState.HELD,
    QueueJobState.PREEMPTED,
    QueueJobState.ERROR,
}


@dataclass(slots=True)
class QueuedTrial:
    """A trial and its jobs in the queue.

    Attributes:
        own: Id of the job that was submitted for the trial; empty while unknown.
        holder: Id of the job that runs the trial or will run it; empty while unknown.
        submitted: ``time.monotonic`` when this driver submitted it; minus infinity if it did not.
        is_over: Whether its end was reported.
        is_cancelled: Whether to cancel its job as soon as the job's id is known.
    """

    token: str
    folder: TrialFolder
    own: str
    holder: str
    submitted: float
    is_over: bool = False
    is_cancelled: bool = False


class QueueTrials:
    """The trials of a driver, by the job ids that the driver returns.

    Attributes:
        surplus: Ids of waiting jobs whose trial another job runs or has run.
    """

    def __init__(
        self,
        listing: QueueListing,
        done: DoneMarkers,
        pending: PendingTrials,
        *,
        listed_after_s: float,
    ) -> None:
        self._listing, self._done, self._pending = listing, done, pending
        self._listed_after_s = listed_after_s
        self._trials: dict[str, QueuedTrial] = {}
        self._open: dict[str, QueuedTrial] = {}  # those whose end was not reported
        self._by_token: dict[str, list[str]] = {}  # ids of their jobs
        self._submitted: dict[str, float] = {}
        self.surplus: set[str] = set()

    def __getitem__(self, job_id: str) -> QueuedTrial:
        return self._trials[job_id]

    def add(
        self, folder: TrialFolder, *, own: str = "", holder: str = "", submitted: float = _NEVER
    ) -> str:
        """Add a trial and its known jobs; return the job id for users of the driver."""
        token = token_of(folder)
        job_id = own or f"{holder}/{token}"
        trial = QueuedTrial(token, folder, own, holder or own, submitted)
        self._trials[job_id] = self._open[job_id] = trial
        self._by_token.setdefault(token, []).append(job_id)
        if own:
            self._submitted[own] = submitted
        return job_id

    def find(self, folder: TrialFolder) -> str | None:
        """Add the trial of ``folder`` if a listed job runs it or will run it; return its job id."""
        token = token_of(folder)
        own = [job.id for job in self._listing.jobs.values() if job.token == token]
        if folder.result.exists():
            self.surplus |= self._waiting(own) - set(self._pending.claims().values())
            return None
        holder = self._pending.claims().get(token)
        if holder is None and not own and not self._pending.withdraw(token):
            holder = self._pending.claims().get(token)  # claimed since the first look
        if holder is not None and holder in self._listing.jobs and holder not in own:
            self.surplus |= set(own)
            return self.add(folder, holder=holder)
        return self.add(folder, own=own[0]) if own else None

    def _waiting(self, ids: Collection[str]) -> set[str]:
        return {id for id in ids if self._listing.jobs[id].state in _WAITING}

    def learn_ids(self) -> None:
        """Look in a new listing for the ids of jobs whose submission returned no id."""
        known = {trial.own for trial in self._trials.values()}
        by_token = {job.token: id for id, job in self._listing.jobs.items() if id not in known}
        for trial in self._active():
            if not trial.own and trial.submitted > _NEVER and trial.token in by_token:
                trial.own = by_token[trial.token]
                trial.holder = trial.holder or trial.own
                if trial.holder != trial.own or trial.is_cancelled:
                    self.surplus.add(trial.own)

    def cancel_when_listed(self, job_ids: Iterable[str]) -> None:
        """Mark jobs without a known id to be cancelled as soon as the id is known."""
        for trial in map(self._trials.__getitem__, job_ids):
            trial.is_cancelled = not trial.own

    def see_claims(self) -> None:
        """Read which trials pilots have claimed, including pilots of an earlier controller."""
        claims = self._pending.claims()
        for trial in self._active():
            holder = claims.get(trial.token, trial.own)
            if holder != trial.own and trial.holder == trial.own:
                trial.holder = holder
                if trial.own:
                    self.surplus.add(trial.own)

    def state(self, job_id: str) -> JobState:
        """Return the state of a trial's job, from the last listing and the done markers.

        A reported end is final. The pilot that ran the trial can seem to be about to exit later,
        between two other trials.
        """
        trial = self._trials[job_id]
        if trial.is_over:
            return JobState.GONE
        job, is_done = self._listing.jobs.get(trial.holder), self._done.is_done(trial.token)
        if job is None and self._may_be_listed_later(trial):
            return JobState.FINISHED if is_done else JobState.WAITING
        if job is None or (is_done and self._runs_another(trial.holder)):
            with contextlib.suppress(OSError):  # makes a network file system refresh
                list(trial.folder.path.iterdir())
            return JobState.GONE
        if is_done:
            return JobState.FINISHED
        return JobState.ALIVE if job.state in _RUNNING else JobState.WAITING

    def pending_ids(self, states: Mapping[Job, JobState]) -> list[str]:
        """Return the queue's ids of the jobs that wait for a host, the oldest first."""
        listed = self._listing.jobs
        waiting = [job.id for job, state in states.items() if state is JobState.WAITING]
        ids = dict.fromkeys(self._trials[job_id].holder for job_id in waiting)
        return [
            id
            for id in ids
            if id and (id not in listed or listed[id].state is QueueJobState.PENDING)
        ]

    def _may_be_listed_later(self, trial: QueuedTrial) -> bool:
        since = self._submitted.get(trial.holder, _NEVER) if trial.holder else trial.submitted
        return since + self._listed_after_s >= self._listing.asked

    def _runs_another(self, holder: str) -> bool:
        """Return whether a job now runs another trial."""
        return any(
            trial.holder == holder and not self._done.is_done(trial.token)
            for trial in self._active()
        )

    def running(self) -> dict[str, QueuedTrial]:
        """Return the trial that each job runs or will run, by the queue's id."""
        latest_last = sorted(self._active(), key=lambda trial: not self._done.is_done(trial.token))
        return {trial.holder: trial for trial in latest_last}

    def job_of(self, token: str) -> str | None:
        """Return the id of a job of this trial that has not ended."""
        ids = self._by_token.get(token, ())
        return next((id for id in ids if self.state(id) is not JobState.GONE), None)

    def end(self, job_id: str) -> None:
        """Record that the end of a trial's job was reported."""
        trial = self._trials[job_id]
        if not trial.is_over:
            trial.is_over = True
            self._open.pop(job_id, None)
            self._pending.forget(trial.token)

    def _active(self) -> Iterator[QueuedTrial]:
        return iter(self._open.values())
