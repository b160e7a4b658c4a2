"""``sge-jobs gpus``: list each GPU and who uses it."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from sge_jobs.cell.rotation import describe_fault, fault_of
from sge_jobs.cli.help import first_group
from sge_jobs.cli.output import ago, say, say_json, table
from sge_jobs.gpu_state import GpuStatus, GpuUse, Intruder, count, decode
from sge_jobs.model import Host, QueuedJob
from sge_jobs.node.failed_start import FailedStart
from sge_jobs.queue.qhost import short_name
from sge_jobs.queue.queue import Queue

HELP = """\
List each GPU with its host, UUID, job, and processes that should not use it.

STATUS is one of:
  free      no job has the GPU
  held      a job has the GPU
  shared    jobs of one user have shares of it; the list has a row for each of these jobs
  turns     the same, but its MPS daemon does not run, so the jobs take turns
  outlived  its job ended, but processes of the job still use the GPU
  blocked   a process outside Grid Engine uses the GPU
  faulty    jobs cannot get it: its host is out of the rotation, for the reason below the table
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
        status: ``free``, ``held`` by a job, ``shared`` by jobs with a row each, ``turns`` (the same
            without a running MPS daemon), ``outlived`` (processes of an ended job still use it),
            ``blocked`` by a process outside Grid Engine, ``faulty``: its host is out of the
            rotation, or ``unknown``: the host does not respond, or has more GPUs than one report of
            its sensor can list.
        share: Part of the GPU that the job has; 0 if no job has it.
        name: Name of the job.
        since: Start of the job, in seconds since the epoch.
        processes: Processes on the GPU that do not belong to its job.
        fault: Why its host is out of the rotation; empty if it is not.
    """

    host: str
    index: int | None = None
    uuid: str = ""
    status: str
    job: str = ""
    task: str = ""
    share: float = 0.0
    name: str = ""
    user: str = ""
    since: float = 0.0
    processes: tuple[str, ...] = ()
    fault: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    first_group(parser).add_argument("--json", action="store_true", help="Print JSON.")


def run(arguments: argparse.Namespace) -> int:
    """Print the GPUs."""
    hosts, jobs = Queue().snapshot(waiting=False)
    rows = gpu_rows(hosts, jobs)
    if arguments.json:
        say_json([asdict(row) for row in rows])
    elif rows:
        say(_render(rows, time.time()))
        for host in hosts:
            if fault := describe_fault(host):
                say(f"{fault[0].upper()}{fault[1:]}")
    else:
        say("The cell is not configured for GPUs. As a manager, on the master: sge-jobs setup")
    return 0


def gpu_rows(hosts: Iterable[Host], jobs: Sequence[QueuedJob]) -> list[GpuRow]:
    """Return a row for each GPU of ``hosts``, with the names of ``jobs``."""
    names = {job.id: job.name for job in jobs}
    by_host: dict[str, list[QueuedJob]] = {}
    for job in jobs:
        if job.host:
            by_host.setdefault(short_name(job.host), []).append(job)
    rows: list[GpuRow] = []
    for host in hosts:
        try:
            uses = decode(host.gpu_state)
        except ValueError:
            rows += _counted(host, by_host.get(short_name(host.name), []))
        else:
            for use in uses:
                rows += _sensed(host, use, names)
            fault = fault_of(host)
            if fault is not None and not uses:
                rows.append(GpuRow(host=host.name, status="faulty", fault=fault.reason))
            left_out = count(host.gpu_state) - len(uses)
            rows += [GpuRow(host=host.name, status="unknown") for _ in range(left_out)]
    return rows


def _sensed(host: Host, use: GpuUse, names: dict[str, str]) -> list[GpuRow]:
    """Return a row for a GPU; for a shared one, a row for each of its jobs."""
    fault = fault_of(host)
    row = GpuRow(
        host=host.name,
        index=use.index,
        uuid=use.uuid,
        status=_status(host, use, fault),
        job=use.job,
        task=use.task,
        share=float(use.status is GpuStatus.HELD),
        name=names.get(use.job, ""),
        user=use.user,
        since=float(use.since),
        processes=tuple(
            f"{process.pid} {process.command} ({_origin(process)})" for process in use.intruders
        ),
        fault=fault.reason if fault is not None else "",
    )
    return [
        replace(
            row,
            job=share.job,
            task=share.task,
            share=share.thousandths / 1000,
            name=names.get(share.job, ""),
        )
        for share in use.shares
    ] or [row]


def _status(host: Host, use: GpuUse, fault: FailedStart | None) -> str:
    if not host.reachable:
        return "unknown"
    if fault is not None and use.status is GpuStatus.FREE:
        return "faulty"
    return use.status.name.lower()


def _origin(process: Intruder) -> str:
    if process.job:
        return f"of job {process.job}, which has other GPUs"
    return "outside Grid Engine" if process.foreign else "left by an ended job"


def _counted(host: Host, here: Sequence[QueuedJob]) -> Iterator[GpuRow]:
    for job in here:
        for _ in range(math.ceil(job.gpus)):
            yield GpuRow(
                host=host.name,
                status=GpuStatus.HELD.name.lower(),
                job=job.id,
                task=job.task,
                share=min(job.gpus, 1.0),
                name=job.name,
                user=job.owner,
                since=job.since,
            )
    status = GpuStatus.FREE.name.lower() if host.reachable else "unknown"
    for _ in range((host.gpus or 0) - sum(int(job.gpus) for job in here)):
        yield GpuRow(host=host.name, status=status)


def _render(rows: Sequence[GpuRow], now: float) -> str:
    columns: dict[str, list[str]] = {
        "HOST": [row.host for row in rows],
        "GPU": ["-" if row.index is None else str(row.index) for row in rows],
        "UUID": [row.uuid for row in rows],
        "STATUS": [row.status for row in rows],
        "SHARE": [f"{row.share:.0%}" if 0 < row.share < 1 else "" for row in rows],
        "JOB": [f"{row.job}.{row.task}" if row.task else row.job for row in rows],
        "NAME": [row.name for row in rows],
        "USER": [row.user for row in rows],
        "SINCE": [ago(row.since, now) for row in rows],
        "OTHER PROCESSES": [", ".join(row.processes) for row in rows],
    }
    if not any(columns["SHARE"]):
        del columns["SHARE"]
    return table(tuple(columns), list(zip(*columns.values(), strict=True)))
