"""Run trials as jobs of any queue."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import ClassVar

from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.done_files import DoneMarkers
from spearmint.drivers.ends import ended_runs, explain_end
from spearmint.drivers.host_starts import HostStarts
from spearmint.drivers.queue import (
    Dialect,
    Queue,
    QueueFactory,
    QueueJobState,
    SubmitSpec,
    room_for,
)
from spearmint.drivers.queue_listing import QueueListing
from spearmint.drivers.queue_notices import QueueNotices
from spearmint.drivers.queue_obstacles import QueueObstacles
from spearmint.drivers.queue_starts import QueueStarts
from spearmint.drivers.queue_trials import QueuedTrial, QueueTrials
from spearmint.drivers.submission import has_time_limit, submit_spec, token_of
from spearmint.drivers.submit_lock import submit_lock
from spearmint.errors import DriverError, DriverUnreachable, SpearmintError
from spearmint.layout import Layout, TrialFolder
from spearmint.trial.pending import PendingTrials

_SNAPSHOT_S = 5.0  # maximum age of a listing in which to look for jobs of an earlier controller
_ENDING_POLL_S = 0.3  # seconds between polls while all jobs are about to exit
_DONE_POLL_S = 0.1
_CANCEL_S = 40.0  # longer than Grid Engine needs to detect that a host is unreachable
_CANCEL_AGAIN_S = 5.0  # a queue may remove the job only after a second request


class QueueDriver(Driver):
    """Submit each trial to a queue; the jobs continue if the controller exits.

    A driver for a queue is a subclass that names a :class:`~spearmint.drivers.queue.Queue` and a
    :class:`~spearmint.drivers.queue.Dialect`. The driver finds a job by the token that it was
    submitted with. One listing gives the states of all jobs. The done marker that each trial
    creates announces its result immediately.

    Attributes:
        queue_type: Creates the queue from the driver's settings.
        dialect: The differences between queues that need no code.
    """

    detaches: ClassVar[bool] = True
    queue_type: ClassVar[QueueFactory]
    dialect: ClassVar[Dialect]

    def __init__(self, settings: DriverSettings, *, queue: Queue | None = None) -> None:
        self._queue: Queue = queue or type(self).queue_type(settings)
        self._resources, self._polling_s = settings.resources, settings.polling_s
        self._layout = Layout(settings.directory)
        self._done = DoneMarkers(self._layout.done_markers)
        self._pending = PendingTrials(self._layout.pending)
        self._uses_pilots = (
            settings.queues_ahead
            and bool(self.dialect.job_id_variable)
            # A walltime counts from the start of a job, so each trial needs a separate job.
            and not has_time_limit(settings.resources, self.dialect)
        )
        self._listing = QueueListing(self._queue)
        self._trials = QueueTrials(
            self._listing, self._done, self._pending, listed_after_s=self.dialect.listed_after_s
        )
        self._notices = QueueNotices(self._queue, self.dialect)
        self._hosts = HostStarts(self._layout.avoided_hosts)
        self._starts = QueueStarts(self._queue, self._resources, self._hosts)
        self._obstacles = QueueObstacles(self._queue)
        self._has_started = False  # whether any trial started since this driver was created
        self._doubtful: dict[str, float] = {}  # time of a submission without an answer, by token
        self._made = time.monotonic()

    # Submitting

    def submit(self, request: JobRequest) -> Job:
        """Queue the runner; after a submission without an answer, never queue it twice."""
        token, folder = token_of(request.folder), request.folder
        if token in self._doubtful and (found := self._find_doubtful(folder)) is not None:
            return found
        if (running := self._trials.job_of(token)) is not None:
            raise DriverError(f"job {running} is already running {folder.path}")
        folder.runner.unlink(missing_ok=True)
        self._done.reset(token)
        self._offer(token, request)
        try:
            with submit_lock(self._layout.submit_lock) as lock:
                id = self._queue.submit(self._spec(request), inherit=[lock])
        except SpearmintError as error:
            if not self._pending.withdraw(token):
                holder = self._pending.claims()[token]
                return self._job(self._trials.add(folder, holder=holder))
            if isinstance(error, DriverUnreachable):
                self._doubtful[token] = time.monotonic()
                self._listing.expire()
            raise
        return self._job(self._trials.add(folder, own=id or "", submitted=time.monotonic()))

    def _find_doubtful(self, folder: TrialFolder) -> Job | None:
        """Return the job of a submission without an answer; None if there is certainly no job."""
        token = token_of(folder)
        age_s = time.monotonic() - self._doubtful[token]
        self._listing.expire()
        found = self.adopt(folder)
        if found is None and age_s < self.dialect.listed_after_s:
            raise DriverUnreachable(
                f"{self.dialect.queue} does not list the job of {folder.path} yet: "
                "the result of its submission is unknown"
            )
        self._doubtful.pop(token, None)
        return found

    def _job(self, id: str) -> Job:
        self._doubtful.pop(self._trials[id].token, None)
        self._obstacles.expect_start()
        return Job(self.name, id)

    def _offer(self, token: str, request: JobRequest) -> None:
        """Allow a pilot that finishes another trial to claim this trial."""
        if not self._has_pilots():
            self._pending.forget(token)
            return
        content = {
            "folder": str(request.folder.path),
            "output": str(request.output),
            "ended": str(self._done.path(token)),
        }
        self._pending.offer(token, int(request.folder.path.name), content)

    def _has_pilots(self) -> bool:
        return self._uses_pilots and self._queue.shares_files()

    def _spec(self, request: JobRequest) -> SubmitSpec:
        token = token_of(request.folder)
        return submit_spec(
            request,
            self._resources,
            self.dialect,
            done=self._done.path(token),
            pending=self._layout.pending if self._has_pilots() else None,
            avoid=self._hosts.avoided(token),
        )

    def preview(self, request: JobRequest) -> str:
        """Return the job to submit, as text. Raises InputError if the queue cannot run it."""
        return self._queue.preview(self._spec(request))

    def capacity(self) -> int:
        """Return how many trials the queue's hosts can run at the same time; at least 1."""
        hosts = self._queue.hosts(self._resources)
        if hosts is None:
            return super().capacity()
        used = [host for host in hosts if host.name not in self._hosts.avoided()]
        return max(1, room_for(used, self._resources))

    # Polling

    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the queued or running job of ``folder``, found by its claim or its token."""
        with submit_lock(self._layout.submit_lock):  # wait for a killed controller's submission
            if self._listing.age_s > _SNAPSHOT_S:
                self._refresh()
        found = self._trials.find(folder)
        while found is None and not folder.result.exists() and self._is_too_early():
            time.sleep(0.1)
            self._refresh()
            found = self._trials.find(folder)
        return None if found is None else self._job(found)

    def has_job(self, folder: TrialFolder) -> bool:
        """Return whether the queue lists a job that was submitted for ``folder`` or claimed it."""
        if self._listing.age_s > _SNAPSHOT_S:
            self._listing.refresh()
        token = token_of(folder)
        if self._pending.claims().get(token) in self._listing.jobs:
            return not self._done.is_done(token)
        return any(job.token == token for job in self._listing.jobs.values())

    def _is_too_early(self) -> bool:
        """Return whether the listing may lack jobs that an earlier controller submitted."""
        return self._listing.asked < self._made + self.dialect.listed_after_s

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return the state of every job, from the last listing or, if that is old, a new one."""
        self._done.refresh()
        self._see_claims()
        is_done = [self._done.is_done(self._trials[job.id].token) for job in jobs]
        if any(is_done):
            self._queue.fetch()
        if self._listing.is_due(_ENDING_POLL_S if all(is_done) else self._polling_s):
            self._refresh()
        states = {job: self._trials.state(job.id) for job in jobs}
        for job, state in states.items():
            if state is JobState.GONE:
                self._trials.end(job.id)
        self._has_started |= any(state is not JobState.WAITING for state in states.values())
        self._notices.add(self._obstacles.look(self._trials.pending_ids(states)))
        return states

    def blocked(self) -> str:
        """Return the obstacle of all pending jobs if no trial has started; empty otherwise."""
        return "" if self._has_started else self._obstacles.lasting

    def _see_claims(self) -> None:
        """Read which trials pilots claimed, and cancel the jobs that are no longer needed."""
        self._trials.see_claims()
        if self._trials.surplus:
            self._queue.cancel(sorted(self._trials.surplus))
            self._trials.surplus.clear()

    def _refresh(self) -> None:
        """List the jobs; if that fails, keep the last listing."""
        self._listing.refresh()
        self._trials.learn_ids()
        running = self._trials.running()
        self._move(self._starts.look(self._listing.jobs, running))
        for id, job in self._listing.jobs.items():
            if (trial := running.get(id)) is not None:
                if job.state is QueueJobState.HELD:
                    self._pending.withdraw(trial.token)  # a pilot must not run it either
                if self._starts.end_of(id) is not None:
                    continue
                self._notices.see(job, str(trial.folder.path.relative_to(self._layout.root)))

    def _move(self, moved: Mapping[str, QueuedTrial]) -> None:
        """Cancel jobs that cannot start; their trials get other jobs."""
        for trial in moved.values():
            self._pending.withdraw(trial.token)
        if moved:
            self._queue.cancel(sorted(moved))
            self._listing.expire()

    def notices(self) -> list[str]:
        """Return messages about jobs that are newly held, suspended or in error, with the fix."""
        return [*self._notices.take(), *self._hosts.take()]

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return when a trial has created its done marker, or after ``timeout_s`` seconds."""
        if not self._obstacles.wakes():
            self._done.wait(timeout_s, step_s=_DONE_POLL_S)

    # Ends

    def forget_others(self, jobs: Collection[Job]) -> None:
        """Delete claims and done markers of trials that have no job in ``jobs``."""
        self._see_claims()  # a job that is no longer needed must not start without its claim
        kept = {self._trials[job.id].token for job in jobs}
        self._pending.keep(kept)
        self._done.keep(kept)

    def cancel(self, jobs: Collection[Job]) -> None:
        """Cancel jobs and wait until they have ended."""
        deadline, asked = time.monotonic() + _CANCEL_S, float("-inf")
        cancelled: set[str] = set()
        left = self._unfinished(jobs)
        while left and time.monotonic() < deadline:
            ids = self._holders(left)
            if ids - cancelled or (ids and time.monotonic() - asked > _CANCEL_AGAIN_S):
                asked, cancelled = time.monotonic(), cancelled | ids
                self._queue.cancel(sorted(ids))
            else:
                time.sleep(max(0.1, self._listing.cost_s))
            self._refresh()
            left = [job for job in left if self._trials.state(job.id) is not JobState.GONE]
        if left:
            self._trials.cancel_when_listed(job.id for job in left)
            self._notices.cannot_cancel(self._holders(left))

    def end(self, jobs: Collection[Job]) -> None:
        """Ask the queue to cancel jobs."""
        left = self._unfinished(jobs)
        self._trials.cancel_when_listed(job.id for job in left)
        if holders := self._holders(left):
            self._queue.cancel(sorted(holders))
            self._listing.expire()

    def _unfinished(self, jobs: Collection[Job]) -> list[Job]:
        """Return the jobs that have not ended, and prevent pilots from running their trials."""
        for job in jobs:
            self._pending.withdraw(self._trials[job.id].token)
        self._done.refresh()
        self._see_claims()
        return [job for job in jobs if self._trials.state(job.id) is not JobState.GONE]

    def _holders(self, jobs: Collection[Job]) -> set[str]:
        """Return the queue's ids to cancel in order to end ``jobs``."""
        return {self._trials[job.id].holder for job in jobs} - {""}

    def explain(self, job: Job) -> JobEnd:
        """Return how the job ended; wait for the queue's accounting."""
        holder = self._trials[job.id].holder
        if not holder:
            return JobEnd(f"its job disappeared: {self.dialect.queue} never listed it")
        if (end := self._starts.end_of(holder)) is not None:
            return end
        runs = ended_runs(self._queue, holder)
        end = self._starts.end_before_start(self._trials[job.id], runs)
        return end or explain_end(runs, self.dialect, self._resources.walltime_s)
