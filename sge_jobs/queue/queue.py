"""The queue; only this class and its helpers run qsub, qstat and the other commands for jobs."""

from __future__ import annotations

import os
import pwd
import re
import time
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TypeVar

from sge_jobs.errors import (
    InputError,
    QueueFull,
    QueueUnreachable,
    SgeJobsError,
    SubmitError,
)
from sge_jobs.model import AccountingRecord, Host, JobSpec, Obstacle, QueuedJob
from sge_jobs.node.failed_start import FailedStart
from sge_jobs.queue.all_jobs import all_jobs, hiding_files
from sge_jobs.queue.commands import Answer, Commands, access_fix
from sge_jobs.queue.default_files import default_files
from sge_jobs.queue.obstacles import find_obstacle
from sge_jobs.queue.qacct import parse_accounting
from sge_jobs.queue.qhost import parse_hosts
from sge_jobs.queue.qstat import (
    parse_error_reason,
    parse_failed_starts,
    parse_jobs,
    placed_jobs,
)
from sge_jobs.queue.qsub import job_script, qsub_argv
from sge_jobs.queue.request_files import kept_defaults

_Rows = TypeVar("_Rows")
_ID = re.compile(r"\d+(\.\d+)?")
_SUBMITTED = re.compile(r"^(\d+)(?:\.\S+)?$", re.MULTILINE)
# With a warning, qsub says "Unable to run job" and exits with 1, although the job is in the queue.
_WARNED = re.compile(r"^Your job(?:-array)? (\d+)[ .].*has been submitted", re.MULTILINE)
_GONE = re.compile(
    r"job \S+ (of user.* )?does not exist|invalid queue or job|following jobs do not exist",
    re.IGNORECASE,
)
_DONE = re.compile(r" has (registered|deleted) |is already in deletion|cleared error state", re.I)
_NO_RECORD = re.compile(r"job id \d+ not found|no jobs running since startup|No such file")
_FULL = re.compile(r"only \d+ jobs are allowed per (user|cluster)")
_SNAPSHOTS = 3
_FORCED_TIMEOUT_S = 90.0  # qdel -f retries for 60 s
_ID_BATCH = 500  # job numbers per qdel: far below the limit of a command line


class Queue:
    """Grid Engine, through the commands of this machine.

    Args:
        programs: Directory of qsub and the other commands; None to find them in PATH.
        timeout_s: Timeout of each command in seconds.
    """

    def __init__(self, *, programs: Path | None = None, timeout_s: float = 30.0) -> None:
        self._commands = Commands(programs=programs, timeout_s=timeout_s)

    def submit(self, spec: JobSpec, *, inherit: Sequence[int] = ()) -> str:
        """Submit ``spec`` and return the number of the job.

        Args:
            inherit: File descriptors that qsub keeps open until it exits, even if this process is
                killed.

        Raises:
            SubmitError: Grid Engine refused the job; the message is that of Grid Engine.
            QueueFull: The same, because of a limit on the number of jobs.
            QueueUnreachable: No answer; after a timeout the job may still be in the queue.
        """
        script = os.fsencode(job_script(spec))
        argv = qsub_argv(spec)
        argv = [*kept_defaults(self._commands.environment, argv), *argv]
        answer = self._commands.run("qsub", *argv, stdin=script, inherit=inherit)
        number = _SUBMITTED.search(answer.out) if answer.status == 0 else None
        if number := number or _WARNED.search(answer.words):
            return number[1]
        words = answer.words.replace("Unable to run job: ", "").replace("\nExiting.", "")
        error = QueueFull if _FULL.search(words) else SubmitError
        raise error(f"qsub refused job {spec.name!r}: {words}", _submit_fix(words))

    def jobs(self, user: str | None = None) -> list[QueuedJob]:
        """Return the jobs of ``user`` (None: the caller, ``"*"``: all users)."""
        owner = user or _own_name()
        try:
            return self._jobs(owner)
        except SgeJobsError as error:
            files = [str(path) for path in default_files(self._commands.environment, "sge_qstat")]
            if not files or error.fix:
                raise
            fix = f"If this does not go away, remove the options of qstat from {', '.join(files)}"
            raise type(error)(error.what, fix) from error

    def _jobs(self, owner: str) -> list[QueuedJob]:
        if self._hides_jobs():
            jobs = _parsed("qstat", lambda: all_jobs(self._commands))
            return [job for job in jobs if fnmatchcase(job.owner, owner)]
        return _parsed("qstat", partial(parse_jobs, self._qstat(owner, "a")))

    def error_reason(self, id: str) -> str:
        """Return Grid Engine's reason why a job is in the error state E; empty if it is not."""
        answer = self._commands.run("qstat", "-xml", "-j", *_checked([id]))
        return _parsed("qstat", lambda: parse_error_reason(answer.out))

    def obstacle(self, id: str) -> Obstacle | None:
        """Return why a waiting job can never start; None if it starts when other jobs end."""
        (checked,) = _checked([id])
        return find_obstacle(self._commands, checked)

    def failed_starts(self, ids: Iterable[str]) -> dict[str, FailedStart]:
        """Return the last failed start of each job that has one; leave out jobs that ended."""
        found: dict[str, FailedStart] = {}
        for batch in _batches(_checked(ids)):
            xml = self._commands.run("qstat", "-xml", "-j", ",".join(batch)).out
            found |= _parsed("qstat", partial(parse_failed_starts, xml))
        return found

    def delete(self, ids: Iterable[str], *, force: bool = False) -> None:
        """Delete jobs; ignore jobs that no longer exist.

        Args:
            force: Delete a job even if its host does not respond; requires a manager.
        """
        wanted = _checked(ids)
        if force:  # for a job that does not exist, qdel -f retries for a minute
            listed = {job.id for job in self.jobs("*")}
            wanted = [id for id in wanted if id.partition(".")[0] in listed]
        options, timeout_s = (["-f"], _FORCED_TIMEOUT_S) if force else ([], None)
        for batch in _batches(wanted):
            answer = self._commands.run("qdel", *options, *batch, timeout_s=timeout_s)
            _raise_refusals("qdel", answer)

    def clear_error(self, ids: Iterable[str]) -> None:
        """Clear the error state E, so that jobs are rerun; ignore jobs that no longer exist."""
        for batch in _batches(_checked(ids)):
            _raise_refusals("qmod", self._commands.run("qmod", "-cj", *batch))

    def accounting(self, id: str) -> list[AccountingRecord]:
        """Return a record of each ended run of a job; empty if there is none."""
        answer = self._commands.run("qacct", "-j", *_checked([id]))
        if answer.status and _NO_RECORD.search(answer.words):
            return []
        if answer.status:
            raise SgeJobsError(f"qacct -j {id} failed: {answer.words}")
        return parse_accounting(answer.out)

    def consumable(self, name: str) -> str:
        """Return how the cell counts a resource: YES (for each slot), JOB or NO.

        Empty if the cell does not have it or does not answer.
        """
        try:
            answer = self._commands.run("qconf", "-sc")
        except QueueUnreachable:
            return ""
        rows = [line.split() for line in answer.out.splitlines()]
        return next((row[5] for row in rows if len(row) > 5 and name in row[:2]), "")

    def hosts(self) -> list[Host]:
        """Return every execution host and its GPUs."""
        return self.snapshot(waiting=False)[0]

    def snapshot(self, *, waiting: bool = True) -> tuple[list[Host], list[QueuedJob]]:
        """Return every execution host and the jobs of all users, at the same time.

        Args:
            waiting: Whether to return the jobs without a host, too; without them it is faster.
        """
        if self._hides_jobs():
            jobs = self.jobs("*")
            return _parsed("qhost", partial(parse_hosts, self._qhost(), jobs)), jobs
        before = self._qstat("*", "rs")
        for _ in range(_SNAPSHOTS):  # until no job started or ended in between
            hosts, after = self._qhost(), self._qstat("*", "a" if waiting else "rs")
            if placed_jobs(before) == placed_jobs(after):
                break
            before = after
            time.sleep(0.05)
        jobs = _parsed("qstat", partial(parse_jobs, after))
        return _parsed("qhost", partial(parse_hosts, hosts, jobs)), jobs

    def _qhost(self) -> str:
        values = "gpu,gpu_share,gpu_state,gpu_fault"
        return self._commands.ask("qhost", "-xml", "-q", "-F", values)

    def _qstat(self, owner: str, states: str) -> str:
        # -s: a user's .sge_qstat may hide waiting jobs, which would count as ended.
        return self._commands.ask("qstat", "-xml", "-r", "-s", states, "-u", owner)

    def _hides_jobs(self) -> bool:
        return bool(hiding_files(self._commands.environment))


def _parsed(command: str, parse: Callable[[], _Rows]) -> _Rows:
    try:
        return parse()
    except ValueError as error:
        raise QueueUnreachable(f"cannot parse the output of {command}: {error}") from None


def _own_name() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _checked(ids: Iterable[str]) -> list[str]:
    checked = list(ids)
    for id in checked:
        if not _ID.fullmatch(id):  # qdel also accepts patterns: "*" would delete all jobs
            raise InputError(f"invalid job number {id!r}", "Give a number, e.g. 4711 or 4711.3")
    return checked


def _batches(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _ID_BATCH] for start in range(0, len(ids), _ID_BATCH)]


def _raise_refusals(command: str, answer: Answer) -> None:
    if answer.status == 0:
        return
    lines = [line for line in answer.words.splitlines() if line.strip(". ")]
    refused = [line for line in lines if not _GONE.search(line) and not _DONE.search(line)]
    if refused:
        raise SgeJobsError(f"{command} failed: " + "\n".join(refused))


def _submit_fix(words: str) -> str:
    if fix := access_fix(words):
        return fix
    if 'unknown resource "gpu"' in words:
        return "The cell is not configured for GPUs. As a manager, on the master: sge-jobs setup"
    if _FULL.search(words):
        return "Delete jobs (qdel), or wait for the end of some. Show the limits: qconf -sconf"
    if unknown := re.search(r'unknown resource "([^"]+)"', words):
        return f"Leave out {unknown[1]}, or correct its name. List all names: qconf -sc"
    if "unknown queue" in words:
        return "List the queues: qconf -sql"
    if "parallel environment" in words:
        return "List parallel environments: qconf -spl    Create smp: sge-jobs setup"
    if "user id" in words:
        return "Submit as another user, or lower min_uid of the cell: qconf -mconf"
    return ""
