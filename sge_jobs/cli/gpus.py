"""``sge-jobs gpus``: list each GPU and who uses it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import ago, say, say_json, table
from sge_jobs.gpu_state import GpuStatus, GpuUse, count, decode
from sge_jobs.model import Host, QueuedJob
from sge_jobs.queue.qhost import short_name
from sge_jobs.queue.queue import Queue

HELP = """\
List each GPU with its host, UUID, job, and processes that should not use it.

STATUS is one of:
  free      no job has the GPU
  held      a job has the GPU
  outlived  its job ended, but processes of the job still use the GPU
  blocked   a process outside Grid Engine uses the GPU
  unknown   the host does not respond, or has too many GPUs for one report

A sensor is the program on each host that reports who uses its GPUs; "sge-jobs setup" installs it.
For a host without one, the list shows how many GPUs its jobs requested.

Examples:
  sge-jobs gpus
  sge-jobs gpus --json
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """One GPU.

    Attributes:
        index, uuid: None and empty if the host has no sensor.
        status: ``free``, ``held`` by a job, ``outlived`` (processes of an ended job still use it),
            ``blocked`` by a process outside Grid Engine, or ``unknown``: the host does not respond,
            or has more GPUs than one report of its sensor can list.
        name: Name of the job.
        since: Start of the job, in seconds since the epoch.
        processes: Processes on the GPU that do not belong to its job.
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
    first_group(parser).add_argument("--json", action="store_true", help="Print JSON.")


def run(arguments: argparse.Namespace) -> int:
    """Print the GPUs."""
    queue = Queue()
    rows = gpu_rows(queue.hosts(), queue.jobs("*"))
    if arguments.json:
        say_json([asdict(row) for row in rows])
    elif rows:
        say(_render(rows, time.time()))
    else:
        say("The cell is not configured for GPUs. As a manager, on the master: sge-jobs setup")
    return 0


def gpu_rows(hosts: Iterable[Host], jobs: Sequence[QueuedJob]) -> list[GpuRow]:
    """Return a row for each GPU of ``hosts``, with the names of ``jobs``."""
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
    kinds = {True: "outside Grid Engine", False: "left by an ended job"}
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
