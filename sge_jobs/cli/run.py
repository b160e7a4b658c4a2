"""``sge-jobs run``: queue a job, show its output, exit as it does."""

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
from sge_jobs.errors import QueueUnreachable, SgeJobsError
from sge_jobs.model import AccountingRecord, JobSpec, JobStatus, QueuedJob
from sge_jobs.queue.qsub import job_name
from sge_jobs.queue.queue import Queue

HELP = """\
Queue a program, show its output, and exit with its status; Ctrl-C ends the job.

The output is in NAME.oJOB where the job starts.

examples:
  sge-jobs run --gpus=1 -- nvidia-smi -L
  sge-jobs run --gpus=2 --time=10m -- python train.py --epochs=1
"""
_LOOK_S = 0.2
_ASK_S = (0.5, 5.0)  # between two qstats: at first, and at most
_RECORD_S = 30.0  # until a job that is gone is in qacct
_LOG_S = 5.0  # until another host's last lines are seen through a shared file system


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_job_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Queue the job, follow it to its end and return its exit status."""
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
        _log(f"Job {id} is queued.")
        _follow(queue, id, Log(spec, id))
    except (KeyboardInterrupt, BrokenPipeError):  # the latter as in: sge-jobs run ... | head
        if id:
            _log(f"Ending job {id} ...")
            queue.delete([id])
        raise
    return _exit_status(queue, id)


class Log:
    """The output of a job, copied to ours as it grows."""

    def __init__(self, spec: JobSpec, id: str) -> None:
        self._path: Path = spec.directory / f"{job_name(spec.name)}.o{id}"
        self._seen = 0

    def copy(self) -> bool:
        """Print what is new; return whether there was any."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._seen)
                new = file.read()
        except OSError:  # not begun, or out of reach for a moment
            return False
        self._seen += len(new)
        sys.stdout.buffer.write(new)
        sys.stdout.buffer.flush()
        return bool(new)

    @property
    def is_there(self) -> bool:
        """Whether the job has begun to write."""
        try:
            return self._path.exists()
        except OSError:
            return False


def _follow(queue: Queue, id: str, log: Log) -> None:
    """Copy the log until the job is gone; SgeJobsError when it cannot run."""
    pause_s, asked_at, said = _ASK_S[0], 0.0, ""
    while True:
        log.copy()
        if time.monotonic() - asked_at >= pause_s:
            try:
                rows = [job for job in queue.jobs() if job.id == id]
            except QueueUnreachable as error:
                said = _say_once(f"{error.what}; still waiting.", said)
            else:
                if not rows:
                    break
                said = _say_once(_words(queue, rows[0]), said)
            asked_at, pause_s = time.monotonic(), min(pause_s * 1.2, _ASK_S[1])
        time.sleep(_LOOK_S)
    _copy_rest(log)


def _copy_rest(log: Log) -> None:
    deadline = time.monotonic() + _LOG_S
    while not log.is_there and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    while log.copy():
        time.sleep(_LOOK_S)


def _words(queue: Queue, job: QueuedJob) -> str:
    """Return what to say about the job; SgeJobsError when it will not run."""
    if job.status is JobStatus.ERROR:
        reason = queue.error_reason(job.id)
        queue.delete([job.id])
        raise SgeJobsError(
            f"job {job.id} cannot run: {reason or 'Grid Engine put it in state E'}",
            "It was removed. Fix this and run the same command again.",
        )
    if job.status is JobStatus.RUNNING:
        return f"Job {job.id} runs on {job.host}."
    return f"Job {job.id} is {job.status.value}."


def _exit_status(queue: Queue, id: str) -> int:
    record = _record(queue, id)
    if record is None:
        raise SgeJobsError(
            f"job {id} is gone, and qacct has no record of it",
            "Someone may have removed it before it ran, or this machine does not see the cell's"
            f" accounting file. Look on the master: qacct -j {id}",
        )
    if record.failed and record.failed != 100:  # 100: the job ended by a signal
        _log(f"Job {id} failed on {record.host}: {record.failed_text} ({record.failed})")
    return record.exit_status or int(bool(record.failed))


def _record(queue: Queue, id: str) -> AccountingRecord | None:
    """Return how the last run of a job ended, once qacct knows."""
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
    """Keep Ctrl-C and SIGTERM waiting: a job whose number nobody has read cannot be ended."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
