"""Run trials as jobs of Grid Engine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from sge_jobs import errors as sge_errors
from sge_jobs import model as sge
from sge_jobs.errors import QueueUnreachable, SgeJobsError
from sge_jobs.model import JobSpec, JobStatus, QueuedJob
from sge_jobs.queue.qsub import job_script, qsub_argv
from sge_jobs.queue.queue import Queue
from spearmint.drivers.base import Driver, DriverSettings, Job, JobEnd, JobRequest, JobState
from spearmint.drivers.done_files import Bells
from spearmint.drivers.sge.ends import explain_end
from spearmint.drivers.sge.spec import has_time_limit, slots_of, token_of, trial_spec
from spearmint.errors import DriverError, DriverUnreachable, InputError
from spearmint.layout import Layout, TrialFolder
from spearmint.trial.pending import Tickets

_SNAPSHOT_S = 5.0  # an answer of qstat that may tell what an earlier controller submitted
_LOAD = 50  # qstat takes at most this share of the time, 1 / 50
_LEAVING_S = 0.3  # seconds between polls while all that is left are jobs about to end
_BELL_S = 0.1
_CANCEL_S = 40.0  # longer than Grid Engine takes to see that a host is lost
_DELETE_AGAIN_S = 5.0  # then it forgets the job, if it is asked again
_SUBMIT_LOCK_S = 60.0
_ACCOUNTING_S = 3.0
_WAITING = {JobStatus.PENDING, JobStatus.HELD, JobStatus.ERROR}
_RUNNING = {JobStatus.RUNNING, JobStatus.ENDING}


class SgeDriver(Driver):
    """Submit each trial by qsub to a GPU of its own; jobs outlive the controller.

    A job is found again by its name, which ends in a token of the trial's folder. One qstat tells
    the state of all jobs; results are noticed at once, by the bell that each trial rings.
    """

    name: ClassVar[str] = "SGE"
    detaches: ClassVar[bool] = True

    def __init__(self, settings: DriverSettings, *, queue: Queue | None = None) -> None:
        self._queue = queue or Queue()
        self._resources = settings.resources
        self._polling_s = settings.polling_s
        layout, self._root = Layout(settings.directory), settings.directory
        self._bells, self._submit_lock = Bells(layout.bells), layout.submitting
        # A walltime counts from the start of a job: then each trial keeps its own.
        self._relays = settings.queues_ahead and not has_time_limit(settings.resources)
        self._tickets, self._tickets_at = Tickets(layout.tickets), layout.tickets
        self._held_by: dict[str, str] = {}  # job -> the job that went on with its trial
        self._surplus: set[str] = set()
        self._tokens: dict[str, str] = {}
        self._folders: dict[str, TrialFolder] = {}
        self._submitted: dict[str, float] = {}
        self._doubtful: set[str] = set()
        self._rows: dict[str, QueuedJob] = {}
        self._asked, self._cost = float("-inf"), 0.0
        self._live: set[str] = set()  # jobs whose end was not told yet
        self._told: dict[str, JobStatus] = {}
        self._notices: list[str] = []

    # Submitting

    def submit(self, request: JobRequest) -> Job:
        """Queue the runner; an answer that was lost does not queue it twice."""
        token = token_of(request.folder)
        if token in self._doubtful:
            self._asked = float("-inf")
            if (found := self.adopt(request.folder)) is not None:
                return found
        self._refuse_second(token, request.folder)
        request.folder.runner.unlink(missing_ok=True)
        self._bells.set_up(token)
        self._offer(token, request)
        try:
            with _submitting(self._submit_lock) as lock:
                job_id = self._queue.submit(self._spec(request), inherit=[lock])
        except SgeJobsError as error:
            if not self._tickets.withdraw(token):
                return self._know_held(self._tickets.takers()[token], request.folder)
            if not isinstance(error, QueueUnreachable):
                raise DriverError(error.what, error.fix) from error
            self._doubtful.add(token)
            self._asked = float("-inf")
            raise DriverUnreachable(error.what, error.fix) from error
        self._submitted[job_id] = time.monotonic()
        return self._know(job_id, request.folder)

    def _offer(self, token: str, request: JobRequest) -> None:
        """Let a job that finishes a trial go on with this one."""
        if not self._relays:
            self._tickets.clear(token)
            return
        content = {
            "folder": str(request.folder.path),
            "output": str(request.output),
            "ended": str(self._bells.file(token)),
        }
        self._tickets.offer(token, int(request.folder.path.name), content)

    def _refuse_second(self, token: str, folder: TrialFolder) -> None:
        for job_id, other in self._tokens.items():
            if other == token and self._state(Job(self.name, job_id)) is not JobState.GONE:
                raise DriverError(f"{folder.path} is being run by job {job_id} already")

    def _know(self, job_id: str, folder: TrialFolder) -> Job:
        token = token_of(folder)
        self._doubtful.discard(token)
        self._live.add(job_id)
        self._tokens[job_id], self._folders[job_id] = token, folder
        return Job(self.name, job_id)

    def _know_held(self, taker: str, folder: TrialFolder) -> Job:
        """Return a job for a trial that ``taker``, the job of another one, has gone on with."""
        job = self._know(f"{taker}/{token_of(folder)}", folder)
        self._held_by[job.id] = taker
        return job

    def _spec(self, request: JobRequest) -> JobSpec:
        token = token_of(request.folder)
        tickets = self._tickets_at if self._relays else None
        return trial_spec(request, self._resources, bell=self._bells.file(token), tickets=tickets)

    def preview(self, request: JobRequest) -> str:
        """Return the qsub line and the script on its standard input.

        Raises:
            InputError: Grid Engine could not run this.
        """
        spec = self._spec(request)
        try:
            line = shlex.join(["qsub", *qsub_argv(spec)])
            return f"{line} <<'END'\n{job_script(spec)}END"
        except sge_errors.InputError as error:
            raise InputError(error.what, error.fix) from error

    def capacity(self) -> int:
        """Return how many trials the cell's hosts that answer can run at once; at least 1."""
        need = self._resources
        with _translated():
            hosts = [host for host in self._queue.hosts() if host.reachable]
        slots = [slots_of(host, need.queue) for host in hosts]
        by_gpus = [(host.gpus or 0) // need.gpus if need.gpus else sys.maxsize for host in hosts]
        return max(1, sum(min(n // need.slots, m) for n, m in zip(slots, by_gpus, strict=True)))

    # Polling

    def adopt(self, folder: TrialFolder) -> Job | None:
        """Return the queued or running job of ``folder``, found by its ticket or by its name."""
        with _submitting(self._submit_lock):  # the qsub of a killed controller is done
            if time.monotonic() - self._asked > _SNAPSHOT_S:
                self._refresh()
        token = token_of(folder)
        own = [row for row in self._rows.values() if row.name.endswith(f"-{token}")]
        if folder.result.exists():
            takers = set(self._tickets.takers().values())
            waiting = {row.id for row in own if row.status in _WAITING}
            self._surplus |= waiting - takers  # another job went on with its trial, to the end
            return None
        taker = self._tickets.takers().get(token)
        if taker is None and not own and not self._tickets.withdraw(token):
            taker = self._tickets.takers().get(token)  # taken this instant
        if taker in self._rows and taker not in {row.id for row in own}:
            self._surplus |= {row.id for row in own}
            return self._know_held(taker, folder)
        return self._know(own[0].id, folder) if own else None

    def poll(self, jobs: Collection[Job]) -> Mapping[Job, JobState]:
        """Return the state of every job, from one qstat; the last one while it is new enough."""
        self._bells.listen()
        self._see_takers()
        finished = all(self._bells.has_rung(self._tokens[job.id]) for job in jobs)
        least = _LEAVING_S if finished else self._polling_s
        if time.monotonic() - self._asked >= max(least, _LOAD * self._cost):
            self._refresh()
        states = {job: self._state(job) for job in jobs}
        for job, state in states.items():
            if state is JobState.GONE and job.id in self._live:
                self._live.discard(job.id)
                self._tickets.clear(self._tokens[job.id])
        return states

    def _see_takers(self) -> None:
        """Learn which trials another job went on with; their own jobs are not needed any more."""
        takers = self._tickets.takers()  # also of an earlier run that queued ahead
        for job_id in self._live:
            taker = takers.get(self._tokens[job_id], job_id)
            if taker != job_id and job_id not in self._held_by:
                self._held_by[job_id] = taker
                self._surplus.add(job_id)
        if self._surplus:
            with _translated():
                self._queue.delete(sorted(self._surplus))
            self._surplus.clear()

    def _holder(self, job_id: str) -> str:
        """Return the job that runs the trial of ``job_id``."""
        return self._held_by.get(job_id, job_id)

    def _state(self, job: Job) -> JobState:
        token, holder = self._tokens[job.id], self._holder(job.id)
        row, rung = self._rows.get(holder), self._bells.has_rung(token)
        if row is None and self._submitted.get(holder, float("-inf")) >= self._asked:
            return JobState.WAITING
        if row is None or (rung and self._has_gone_on(holder)):
            with contextlib.suppress(OSError):  # a network file system looks again
                list(self._folders[job.id].path.iterdir())
            return JobState.GONE
        if rung:
            return JobState.FINISHED
        return JobState.ALIVE if row.status in _RUNNING else JobState.WAITING

    def _has_gone_on(self, holder: str) -> bool:
        """Tell whether a job is at a later trial than one that has ended."""
        return any(
            self._holder(job_id) == holder and not self._bells.has_rung(self._tokens[job_id])
            for job_id in self._live
        )

    def _refresh(self) -> None:
        """Ask qstat; a failure leaves what is known as it was."""
        began = time.monotonic()
        with _translated():
            rows = self._queue.jobs()
        self._rows = {row.id: row for row in rows}
        self._asked, self._cost = began, time.monotonic() - began
        by_holder = {self._holder(job_id): job_id for job_id in sorted(self._live, key=_number)}
        for row in rows:
            job_id = by_holder.get(row.id)
            if job_id and self._told.get(row.id, JobStatus.PENDING) != row.status:
                self._told[row.id] = row.status
                self._notices += self._notice(row, job_id)

    def _notice(self, row: QueuedJob, job_id: str) -> list[str]:
        trial = self._folders[job_id].path.relative_to(self._root)
        job = f"job {row.id} ({trial})"
        if row.status is JobStatus.ERROR:
            reason = ""
            with contextlib.suppress(SgeJobsError):
                reason = self._queue.error_reason(row.id)
            return [
                f"{job} is in error state {row.state}: {reason or 'no reason is given'}\n"
                f"Mend that, then: qmod -cj {row.id}    or give it up: qdel {row.id}"
            ]
        if row.status is JobStatus.HELD:
            self._tickets.withdraw(self._tokens[job_id])  # nor may another job go on with it
            return [f"{job} is held ({row.state}); it waits for: qrls {row.id}"]
        if row.status is JobStatus.SUSPENDED:
            return [f"{job} is suspended ({row.state}); it goes on after: qmod -usj {row.id}"]
        return []

    def notices(self) -> list[str]:
        """Return which jobs came to be held, suspended or in error, with the cure."""
        notices, self._notices = self._notices, []
        return notices

    def wait(self, jobs: Collection[Job], timeout_s: float) -> None:
        """Return when a trial rings its bell."""
        self._bells.wait(timeout_s, step_s=_BELL_S)

    # Ends

    def cancel(self, jobs: Collection[Job]) -> None:
        """Delete jobs and wait until Grid Engine has ended them."""
        left = self._holders(jobs)
        deadline, asked = time.monotonic() + _CANCEL_S, float("-inf")
        while left and time.monotonic() < deadline:
            if time.monotonic() - asked > _DELETE_AGAIN_S:
                asked = time.monotonic()
                with _translated():
                    self._queue.delete(sorted(left))
            else:
                time.sleep(max(0.1, self._cost))
            self._refresh()
            left &= self._rows.keys()
        if left:
            self._notices.append(
                f"jobs that do not end: {' '.join(sorted(left))}; their host may be lost. "
                f"A manager of the cell can make it forget them: qdel -f {' '.join(sorted(left))}"
            )

    def end(self, jobs: Collection[Job]) -> None:
        """Ask Grid Engine to delete jobs."""
        holders = self._holders(jobs)
        if holders:
            with _translated():
                self._queue.delete(sorted(holders))
            self._asked = float("-inf")

    def _holders(self, jobs: Collection[Job]) -> set[str]:
        """Return what Grid Engine would have to delete to end ``jobs``, and let none go on."""
        for job in jobs:
            self._tickets.withdraw(self._tokens[job.id])
        self._bells.listen()
        self._see_takers()
        living = [job for job in jobs if self._state(job) is not JobState.GONE]
        return {self._holder(job.id) for job in living}

    def explain(self, job: Job) -> JobEnd:
        """Return what qacct says, once it does."""
        holder = self._holder(job.id)
        deadline = time.monotonic() + _ACCOUNTING_S
        records: list[sge.AccountingRecord] = []
        with contextlib.suppress(SgeJobsError):
            while not records and time.monotonic() < deadline:
                records = self._queue.accounting(holder)
                if not records:
                    time.sleep(0.2)
        return explain_end(records, self._resources.walltime_s)


def _number(job_id: str) -> tuple[int, str]:
    """Return what sorts jobs by age."""
    return int(job_id.partition("/")[0]), job_id


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except QueueUnreachable as error:
        raise DriverUnreachable(error.what, error.fix) from error
    except SgeJobsError as error:
        raise DriverError(error.what, error.fix) from error


@contextmanager
def _submitting(path: Path) -> Iterator[int]:
    """Hold the right to submit; a qsub inherits it, should its controller be killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    deadline = time.monotonic() + _SUBMIT_LOCK_S
    try:
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise DriverUnreachable(
                        "a qsub of an earlier run has not ended for a minute"
                    ) from None
                time.sleep(0.05)
        yield fd
    finally:
        os.close(fd)
