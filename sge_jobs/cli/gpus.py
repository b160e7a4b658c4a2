"""``sge-jobs gpus``: each GPU and who has it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from sge_jobs.cli.output import ago, say, say_json, table
from sge_jobs.gpu_state import GpuStatus, GpuUse, count, decode
from sge_jobs.model import Host, QueuedJob
from sge_jobs.queue.qhost import short_name
from sge_jobs.queue.queue import Queue

HELP = """\
List each GPU: host, UUID, job, since when, and processes that should not be on it.

A host without a sensor shows how many GPUs its jobs asked for.

examples:
  sge-jobs gpus
  sge-jobs gpus --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One GPU.

    Attributes:
        index, uuid: None and empty where no sensor tells.
        status: ``free``, ``held``, ``outlived`` by processes of a job that is over, ``blocked``
            by a process outside Grid Engine, or ``unknown``: the host does not answer, or has more
            GPUs than its sensor can tell of at once.
        name: Of the job.
        since: Seconds since the epoch.
        processes: On the GPU, but not of the job that has it.
    """

    host: str
    index: int | None = None
    uuid: str = ""
    status: str
    job: str = ""
    task: str = ""
    name: str = ""
    user: str = ""
    since: float = 0.0
    processes: tuple[str, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the GPUs."""
    queue = Queue()
    rows = gpu_rows(queue.hosts(), queue.jobs("*"))
    if arguments.json:
        say_json([asdict(row) for row in rows])
    elif rows:
        say(_render(rows, time.time()))
    else:
        say("The cell knows no GPUs. As its manager, on its master: sge-jobs setup")
    return 0


def gpu_rows(hosts: Iterable[Host], jobs: Sequence[QueuedJob]) -> list[GpuRow]:
    """Return a row for each GPU of ``hosts``; names of ``jobs`` are filled in."""
    names = {job.id: job.name for job in jobs}
    rows: list[GpuRow] = []
    for host in hosts:
        try:
            uses = decode(host.gpu_state)
        except ValueError:
            rows += _counted(host, jobs)
        else:
            rows += [_sensed(host, use, names) for use in uses]
            left_out = count(host.gpu_state) - len(uses)
            rows += [GpuRow(host=host.name, status="unknown") for _ in range(left_out)]
    return rows


def _sensed(host: Host, use: GpuUse, names: dict[str, str]) -> GpuRow:
    kinds = {True: "not a job's", False: "of a job that is over"}
    return GpuRow(
        host=host.name,
        index=use.index,
        uuid=use.uuid,
        status=use.status.name.lower() if host.reachable else "unknown",
        job=use.job,
        task=use.task,
        name=names.get(use.job, ""),
        user=use.user,
        since=float(use.since),
        processes=tuple(
            f"{process.pid} {process.command} ({kinds[process.foreign]})"
            for process in use.intruders
        ),
    )


def _counted(host: Host, jobs: Iterable[QueuedJob]) -> Iterator[GpuRow]:
    here = [job for job in jobs if job.host and short_name(job.host) == short_name(host.name)]
    for job in here:
        for _ in range(job.gpus):
            yield GpuRow(
                host=host.name,
                status=GpuStatus.HELD.name.lower(),
                job=job.id,
                task=job.task,
                name=job.name,
                user=job.owner,
                since=job.since,
            )
    status = GpuStatus.FREE.name.lower() if host.reachable else "unknown"
    for _ in range((host.gpus or 0) - sum(job.gpus for job in here)):
        yield GpuRow(host=host.name, status=status)


def _render(rows: Iterable[GpuRow], now: float) -> str:
    header = ("HOST", "GPU", "UUID", "STATUS", "JOB", "NAME", "USER", "SINCE", "OTHER PROCESSES")
    lines = [
        (
            row.host,
            "-" if row.index is None else str(row.index),
            row.uuid,
            row.status,
            f"{row.job}.{row.task}" if row.task else row.job,
            row.name,
            row.user,
            ago(row.since, now),
            ", ".join(row.processes),
        )
        for row in rows
    ]
    return table(header, lines)
