"""``sge-jobs run``: submit a job, show its output, and exit with its exit code."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from sge_jobs.cli.job_options import add_job_arguments, job_spec
from sge_jobs.cli.output import say
from sge_jobs.cli.submit import dry_run
from sge_jobs.cli.waiting import Waiting
from sge_jobs.errors import QueueUnreachable, SgeJobsError
from sge_jobs.model import AccountingRecord, JobSpec, JobStatus, QueuedJob
from sge_jobs.queue.qsub import job_name
from sge_jobs.queue.queue import Queue

HELP = """\
Submit a program as a job, show its output, and exit with its exit code.

Ctrl-C deletes the job. The output is also in the file NAME.oJOB in the directory of the job.

Examples:
  sge-jobs run --gpus=1 -- nvidia-smi -L
  sge-jobs run --gpus=2 --time=10m -- python train.py --epochs=1
"""
_LOOK_S = 0.2
_ASK_S = (0.5, 5.0)  # between two calls of qstat: first, and longest
_RECORD_S = 30.0  # until qacct shows an ended job
_LOG_S = 5.0  # until a shared file system shows the log of another host


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Submit the job, follow it until it ends and return its exit code."""
    spec = job_spec(arguments)
    if arguments.dry_run:
        say(dry_run(spec))
        return 0
    queue = Queue()
    signal.signal(signal.SIGTERM, _interrupt)
    id = ""
    try:
        with _uninterrupted():
            id = queue.submit(spec)
        _log(f"Job {id} submitted.")
        _follow(queue, id, Log(spec, id))
    except (KeyboardInterrupt, BrokenPipeError):  # BrokenPipeError as in: sge-jobs run ... | head
        if id:
            _log(f"Deleting job {id} ...")
            queue.delete([id])
        raise
    return _exit_status(queue, id)


class Log:
    """The output file of a job, copied to standard output as it grows."""

    def __init__(self, spec: JobSpec, id: str) -> None:
        self._path: Path = spec.directory / f"{job_name(spec.name)}.o{id}"
        self._seen = 0

    def copy(self) -> bool:
        """Print new output; return whether there was any."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._seen)
                new = file.read()
        except OSError:  # not created yet, or the file system is briefly unavailable
            return False
        self._seen += len(new)
        sys.stdout.buffer.write(new)
        sys.stdout.buffer.flush()
        return bool(new)

    @property
    def is_there(self) -> bool:
        """Whether the file exists."""
        try:
            return self._path.exists()
        except OSError:
            return False


def _follow(queue: Queue, id: str, log: Log) -> None:
    """Copy the log until the job ends; SgeJobsError if it cannot start."""
    pause_s, asked_at, said = _ASK_S[0], 0.0, ""
    waiting = Waiting(queue, id)
    while True:
        log.copy()
        if time.monotonic() - asked_at >= pause_s:
            try:
                rows = [job for job in queue.jobs() if job.id == id]
            except QueueUnreachable as error:
                said = _say_once(f"{error.what}; waiting for the master.", said)
            else:
                if not rows:
                    break
                said = _say_once(_words(queue, rows[0], waiting), said)
            asked_at, pause_s = time.monotonic(), min(pause_s * 1.2, _ASK_S[1])
        time.sleep(_LOOK_S)
    _copy_rest(log)


def _copy_rest(log: Log) -> None:
    deadline = time.monotonic() + _LOG_S
    while not log.is_there and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    while log.copy():
        time.sleep(_LOOK_S)


def _words(queue: Queue, job: QueuedJob, waiting: Waiting) -> str:
    """Return a line about the state of the job; SgeJobsError if it cannot start."""
    if job.status is JobStatus.ERROR:
        reason = queue.error_reason(job.id)
        queue.delete([job.id])
        raise SgeJobsError(
            f"job {job.id} failed to start: {reason or 'it is in state E (error)'}",
            "The job was deleted. Fix this and rerun the command.",
        )
    if job.status is JobStatus.RUNNING:
        return f"Job {job.id} runs on {job.host}."
    if job.status is JobStatus.PENDING and (text := waiting.words()):
        return text
    return f"Job {job.id} is {job.status.value}."


def _exit_status(queue: Queue, id: str) -> int:
    record = _record(queue, id)
    if record is None:
        raise SgeJobsError(
            f"job {id} is no longer in the queue, and qacct has no record of it",
            "It may have been deleted before it started, or this machine cannot read the"
            f" accounting file of the cell. Check on the master: qacct -j {id}",
        )
    if record.failed and record.failed != 100:  # 100: a signal terminated the job
        _log(f"Job {id} failed on {record.host}: {record.failed_text} ({record.failed})")
    return record.exit_status or int(bool(record.failed))


def _record(queue: Queue, id: str) -> AccountingRecord | None:
    """Return the record of the job's last run, as soon as qacct shows it; None on a timeout."""
    deadline = time.monotonic() + _RECORD_S
    while True:
        try:
            records = [record for record in queue.accounting(id) if record.ended]
        except QueueUnreachable:
            records = []
        if records:
            return records[-1]
        if time.monotonic() > deadline:
            return None
        time.sleep(_ASK_S[0])


def _say_once(text: str, said: str) -> str:
    if text != said:
        _log(text)
    return text


def _log(text: str) -> None:
    sys.stderr.write(f"{text}\n")


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM: a job cannot be deleted before its number is known."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)
