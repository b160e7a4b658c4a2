"""Diagnose a cell: find each problem and its fix, without side effects."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sge_jobs.cell.gpu_problems import use_problems
from sge_jobs.cell.host_problems import host_problems, state_problems
from sge_jobs.cell.problem import Problem
from sge_jobs.cell.qconf_text import CellConfig, cluster_default, complex_rows, gpus_given
from sge_jobs.gpu_state import count, decode
from sge_jobs.model import Host

_NEWER = ("gpu_share", "gpu_fault")  # complexes that the first version did not have
_SETUP = "As a manager, on the master: sge-jobs setup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that runs ``sge-jobs check``.

    Attributes:
        addresses: IP addresses of its name.
        hosts_file: Text of /etc/hosts.
        uid: User ID of the caller.
    """

    name: str
    addresses: tuple[str, ...]
    hosts_file: str
    uid: int


def name_problems(machine: Machine) -> Iterator[Problem]:
    """Yield the reasons why Grid Engine cannot identify this machine by its name."""
    short = machine.name.partition(".")[0]
    if not machine.addresses:
        yield Problem(
            what=f"this machine's name {machine.name} does not resolve to an address",
            fix=f"Add this line to /etc/hosts: ADDRESS {machine.name}",
        )
    for address in machine.addresses:
        if ipaddress.ip_address(address).is_loopback:
            yield Problem(
                what=f"this machine's name {machine.name} resolves to {address}, which other hosts"
                " cannot reach",
                fix=f"In /etc/hosts, remove {machine.name} from the line of {address} and add a"
                f" line with its real address: ADDRESS {machine.name}",
            )
    for address, first, others in _host_lines(machine.hosts_file):
        if machine.name in others and first.partition(".")[0].lower() != short.lower():
            yield Problem(
                what=f"in /etc/hosts, {address} is named {first} before {machine.name}, and Grid"
                " Engine uses only the first name",
                fix=f"Change that line to: {address} {machine.name} {first}",
            )


def _host_lines(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1:
            yield words[0], words[1], words[2:]


def manager_problems(managers: Iterable[str], owners: Collection[str]) -> Iterator[Problem]:
    """Yield the managers, apart from root, who run jobs: a job could let Grid Engine become root.

    Args:
        owners: Owners of the jobs in the cell.
    """
    for name in managers:
        if name != "root" and name in owners:
            yield Problem(
                what=f"{name} is a manager of Grid Engine and runs jobs: each of these jobs can run"
                " programs as root on every host",
                fix=f"Run jobs as another user, or as root on the master: qconf -dm {name}",
            )


def cell_problems(
    cell: CellConfig,
    hosts: Sequence[Host],
    *,
    queue: str,
    submit_hosts: Iterable[str],
    machine: Machine,
) -> Iterator[Problem]:
    """Yield the problems of the cell and its hosts."""
    yield from _access_problems(cell, submit_hosts, machine)
    if not hosts:
        yield Problem(
            what="the cell has no execution host",
            fix="Add one: qconf -ae HOST    Then start its execution daemon",
        )
    for host in hosts:
        yield from host_problems(cell, host)
        yield from state_problems(cell, host)
    yield from _gpu_setup_problems(cell, queue)
    if "gpu_state" in complex_rows(cell.complexes):
        yield from _caller_problems(cell, hosts)
        yield from _other_queue_problems(cell, hosts, queue)
        for host in hosts:
            yield from _gpu_problems(cell, host)


def _access_problems(
    cell: CellConfig, submit_hosts: Iterable[str], machine: Machine
) -> Iterator[Problem]:
    known = {name.partition(".")[0].lower() for name in submit_hosts}
    if machine.name.partition(".")[0].lower() not in known:
        yield Problem(
            what=f"{machine.name} is not a submit host: it cannot submit jobs",
            fix=f"As a manager, on the master: qconf -as {machine.name}",
        )
    lowest = cell.configuration.get("min_uid", "0")
    if lowest.isdigit() and 0 < machine.uid < int(lowest):  # root only manages the cell
        yield Problem(
            what=f"the cell accepts no jobs of user ID {machine.uid}: its min_uid is {lowest}",
            fix="Submit as another user, or lower min_uid: qconf -mconf",
        )


def _gpu_setup_problems(cell: CellConfig, queue: str) -> Iterator[Problem]:
    rows = complex_rows(cell.complexes)
    if "gpu" not in rows:
        yield Problem(
            what="jobs cannot request GPUs: the cell has no complex (resource) gpu", fix=_SETUP
        )
    elif rows["gpu"][5:6] == ["NO"]:
        yield Problem(
            what="the complex (resource) gpu is not consumable: several jobs can get the same GPU",
            fix="As a manager, set it with qconf -mc to: gpu gpu INT <= YES JOB 0 0",
        )
    if "gpu_state" not in rows:
        yield Problem(
            what="hosts cannot report who uses their GPUs: the cell has no complex (resource)"
            " gpu_state",
            fix=_SETUP,
        )
    missing = [name for name in _NEWER if name not in rows]
    if missing and "gpu" in rows and "gpu_state" in rows:
        yield Problem(
            what="the cell was set up by an earlier version of sge-jobs: it has no complex"
            f" (resource) {' and no '.join(missing)}",
            fix=f"{_SETUP}    Jobs keep running and keep their GPUs",
        )
    if queue not in cell.queues:
        names = ", ".join(cell.queues) or "none"
        yield Problem(what=f"no queue {queue}", fix=f"Choose one of {names}: --queue NAME")
        return
    starter = cluster_default(cell.queues[queue].get("starter_method", "NONE"))
    if starter.upper() == "NONE":
        yield Problem(
            what=f"queue {queue} does not assign GPUs to jobs: it has no starter (starter_method)",
            fix=_SETUP,
        )
    elif PurePosixPath(starter).name != "gpu-starter":
        yield Problem(
            what=f"queue {queue} has another starter (starter_method), {starter}: it must end"
            " with gpu-starter",
            fix='Make this its last line: exec .../sge_jobs/node/gpu-starter "$@"',
        )


def _other_queue_problems(cell: CellConfig, hosts: Sequence[Host], queue: str) -> Iterator[Problem]:
    for name, attributes in cell.queues.items():
        starter = cluster_default(attributes.get("starter_method", "NONE"))
        given = gpus_given(cluster_default(attributes.get("complex_values", "")))
        if name == queue or starter.upper() != "NONE" or given == "0":
            continue
        on = [host.name for host in hosts if host.gpus and name in {q.name for q in host.queues}]
        if on:
            yield Problem(
                what=f"queue {name} has no starter (starter_method): its jobs on {', '.join(on)}"
                " use GPUs of other jobs",
                fix=f"As a manager, on the master: sge-jobs setup --queue {name}    Or keep GPU"
                f" jobs out of it: qconf -mattr queue complex_values gpu=0 {name}",
            )


def _caller_problems(cell: CellConfig, hosts: Sequence[Host]) -> Iterator[Problem]:
    known = {name.partition(".")[0].lower() for name in cell.callers}
    for host in hosts:
        if host.name.partition(".")[0].lower() not in known:
            yield Problem(
                what=f"host {host.name} is not a submit host and cannot query the master: all jobs"
                " on it, with or without GPUs, go back to the queue",
                fix=f"As a manager, on the master: qconf -as {host.name}",
            )


def _gpu_problems(cell: CellConfig, host: Host) -> Iterator[Problem]:
    given = gpus_given(cell.hosts.get(host.name, {}).get("complex_values", ""))
    if not host.reachable:
        return
    try:
        uses, there = decode(host.gpu_state), count(host.gpu_state)
    except ValueError:
        if given not in (None, "0"):
            yield Problem(
                what=f"the GPU sensor of host {host.name} does not report",
                fix="Wait a minute after setup. Otherwise check that users of the host can run the"
                " load_sensor shown by: qconf -sconf global    See also the log of its execd",
            )
        return
    if given is None and uses:
        yield Problem(
            what=f"host {host.name} has {there} GPUs, but the cell is configured for none",
            fix=_SETUP,
        )
    elif given is not None and given != str(there):
        fewer = given.isdigit() and there < int(given)
        check = f"Check if one failed: on {host.name}, nvidia-smi -L    If not: " if fewer else ""
        yield Problem(
            what=f"host {host.name} has {there} GPUs, but the cell is configured for {given}",
            fix=f"{check}As a manager, on the master: sge-jobs setup --gpus {host.name}={there}",
        )
    for use in uses:
        yield from use_problems(host, use)
