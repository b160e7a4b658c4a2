"""Hosts whose GPUs jobs cannot get; they are out of the rotation, unless the site keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from sge_jobs.cell.problem import Problem
from sge_jobs.model import Host
from sge_jobs.node.failed_start import FailedStart, decode


def fault_of(host: Host) -> FailedStart | None:
    """Return why jobs cannot get the GPUs of ``host``; None if they can."""
    return decode(host.gpu_fault)


def describe_fault(host: Host) -> str:
    """Return one line: since when jobs cannot get the GPUs of ``host``, and why; else empty."""
    fault = fault_of(host)
    if fault is None:
        return ""
    since = datetime.fromtimestamp(fault.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    where = "out of the rotation" if fault.times else "faulty, but stays in the rotation,"
    return f"host {host.name} is {where} since {since}: {fault.reason}"


def rotation_problems(hosts: Iterable[Host], starter: str) -> Iterator[Problem]:
    """Yield the hosts whose GPUs jobs cannot get.

    Args:
        starter: Path of the starter on the hosts.
    """
    for host in hosts:
        if what := describe_fault(host):
            yield Problem(
                what=what,
                fix=f"Fix this on {host.name}; half a minute later jobs can use its GPUs."
                f" To check it there: {starter} --start-check",
            )
