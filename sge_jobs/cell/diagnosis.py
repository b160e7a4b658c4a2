"""Diagnose a cell: each problem and its fix; pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from sge_jobs.cell.qconf_text import CellConfig, cluster_default, complex_rows, gpus_given
from sge_jobs.gpu_state import GpuStatus, GpuUse, count, decode
from sge_jobs.model import Host

_SETUP = "As a manager, on the master: sge-jobs setup"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong, and how to fix it."""

    what: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The machine that asks.

    Attributes:
        addresses: Of its own name.
        hosts_file: Text of /etc/hosts.
        uid: Of who asks.
    """

    name: str
    addresses: tuple[str, ...]
    hosts_file: str
    uid: int


def name_problems(machine: Machine) -> Iterator[Problem]:
    """Yield what keeps Grid Engine from knowing this machine by its name."""
    short = machine.name.partition(".")[0]
    if not machine.addresses:
        yield Problem(
            what=f"this machine's name {machine.name} has no address",
            fix=f"Put a line into /etc/hosts: ADDRESS {machine.name}",
        )
    for address in machine.addresses:
        if ipaddress.ip_address(address).is_loopback:
            yield Problem(
                what=f"this machine's name {machine.name} is {address}, out of reach for others",
                fix=f"In /etc/hosts, take {machine.name} from the line of {address} and add a line"
                f" with its real address: ADDRESS {machine.name}",
            )
    for address, first, others in _host_lines(machine.hosts_file):
        if machine.name in others and first.partition(".")[0].lower() != short.lower():
            yield Problem(
                what=f"/etc/hosts names {address} first {first}, then {machine.name};"
                " Grid Engine takes the first name only",
                fix=f"Write that line as: {address} {machine.name} {first}",
            )


def _host_lines(text: str) -> Iterator[tuple[str, str, list[str]]]:
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if len(words) > 1:
            yield words[0], words[1], words[2:]


def cell_problems(
    cell: CellConfig,
    hosts: Sequence[Host],
    *,
    queue: str,
    submit_hosts: Iterable[str],
    machine: Machine,
) -> Iterator[Problem]:
    """Yield what is wrong with the cell and its hosts."""
    yield from _access_problems(cell, submit_hosts, machine)
    if not hosts:
        yield Problem(what="the cell has no execution host", fix="qconf -ae HOST, then its daemon")
    for host in hosts:
        yield from _host_problems(host)
        yield from _queue_problems(host)
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
            what=f"{machine.name} may submit no jobs",
            fix=f"As a manager, on the master: qconf -as {machine.name}",
        )
    lowest = cell.configuration.get("min_uid", "0")
    if lowest.isdigit() and 0 < machine.uid < int(lowest):  # root is here as the manager
        yield Problem(
            what=f"the cell takes no jobs of user number {machine.uid}: its min_uid is {lowest}",
            fix="Submit as another user, or lower min_uid: qconf -mconf",
        )


def _host_problems(host: Host) -> Iterator[Problem]:
    if not host.reachable:
        yield Problem(
            what=f"host {host.name} does not answer",
            fix=f"On {host.name}: systemctl restart gridengine-exec; its log is in"
            " /var/spool/gridengine/execd. A host that is gone for good: qconf -de HOST",
        )
    elif not host.queues:
        yield Problem(
            what=f"host {host.name} is in no queue",
            fix=f"qconf -aattr hostgroup hostlist {host.name} @allhosts",
        )


def _queue_problems(host: Host) -> Iterator[Problem]:
    for queue in host.queues:
        name = f"{queue.name}@{host.name}"
        for letters, what, fix in _STATES:
            if any(letter in queue.state for letter in letters):
                yield Problem(what=what.format(name), fix=fix.format(name))
        if queue.slots == 0:
            yield Problem(
                what=f"queue {name} has no slots",
                fix=f"qconf -rattr queue slots NUMBER {queue.name}",
            )


_STATES = (
    (
        "aA",
        "queue {} is in alarm and starts no jobs: its host's load is above a threshold",
        "See which: qstat -f -explain a -q {}    No thresholds for GPU hosts: sge-jobs setup",
    ),
    (
        "E",
        "queue {} is in state E after a job could not be started there",
        "See why: qstat -f -explain E -q {0}    Then: qmod -cq {0}",
    ),
    ("dD", "queue {} is disabled", "qmod -e {}"),
    ("sSC", "queue {} is suspended", "qmod -usq {}"),
    ("c", "queue {} has an ambiguous configuration", "qstat -f -explain c -q {}"),
)


def _gpu_setup_problems(cell: CellConfig, queue: str) -> Iterator[Problem]:
    rows = complex_rows(cell.complexes)
    if "gpu" not in rows:
        yield Problem(what="the cell knows no GPUs: there is no complex gpu", fix=_SETUP)
    elif rows["gpu"][5:6] == ["NO"]:
        yield Problem(
            what="the complex gpu is no consumable: any number of jobs may share a GPU",
            fix="As a manager, set it to: gpu gpu INT <= YES JOB 0 0    by: qconf -mc",
        )
    if "gpu_state" not in rows:
        yield Problem(what="no host tells who has its GPUs: no complex gpu_state", fix=_SETUP)
    if queue not in cell.queues:
        yield Problem(what=f"there is no queue {queue}", fix="Name another one: --queue NAME")
        return
    starter = cluster_default(cell.queues[queue].get("starter_method", "NONE"))
    if starter.upper() == "NONE":
        yield Problem(what=f"queue {queue} gives no job a GPU of its own: no starter", fix=_SETUP)
    elif PurePosixPath(starter).name != "gpu-starter":
        yield Problem(
            what=f"queue {queue} has another starter, {starter}",
            fix='End it with: exec .../sge_jobs/node/gpu-starter "$@"',
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
                what=f"queue {name} takes jobs with GPUs to {', '.join(on)}, and there they use"
                " GPUs that other jobs have: no starter",
                fix=f"As a manager, on the master: sge-jobs setup --queue {name}    Or keep jobs"
                f" with GPUs out of it: qconf -mattr queue complex_values gpu=0 {name}",
            )


def _caller_problems(cell: CellConfig, hosts: Sequence[Host]) -> Iterator[Problem]:
    known = {name.partition(".")[0].lower() for name in cell.callers}
    for host in hosts:
        if host.name.partition(".")[0].lower() not in known:
            yield Problem(
                what=f"host {host.name} may not ask the master what its jobs want: all of them,"
                " with GPUs and without, go back into the queue",
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
                what=f"the GPU sensor of host {host.name} is silent",
                fix="A new one takes a minute. Else see that users of the host can run the"
                " load_sensor of: qconf -sconf global    and the messages of its execd",
            )
        return
    if given is None and uses:
        yield Problem(what=f"host {host.name} has {there} GPUs, the cell gives none", fix=_SETUP)
    elif given is not None and given != str(there):
        fewer = given.isdigit() and there < int(given)
        lost = f"Is one lost? On {host.name}: nvidia-smi -L    If none is, as" if fewer else "As"
        yield Problem(
            what=f"host {host.name} has {there} GPUs, the cell gives {given}",
            fix=f"{lost} a manager, on the master: sge-jobs setup --gpus {host.name}={there}",
        )
    for use in uses:
        yield from _use_problems(host, use)


def _use_problems(host: Host, use: GpuUse) -> Iterator[Problem]:
    pids = " ".join(str(process.pid) for process in use.intruders)
    names = ", ".join(f"{process.pid} {process.command}".strip() for process in use.intruders)
    where = f"GPU {use.index} of host {host.name}"
    fix = f"On {host.name}: kill {pids}" if pids else f"Look on {host.name}: nvidia-smi"
    if use.status is GpuStatus.OUTLIVED:
        job = f"{use.job}.{use.task}" if use.task else use.job
        yield Problem(what=f"{where} is kept by what job {job} left: {names}", fix=fix)
    elif use.status is GpuStatus.BLOCKED:
        yield Problem(what=f"{where} is kept by no job: {names or 'its lock file'}", fix=fix)
    elif use.intruders:
        yield Problem(what=f"{where} is also used by: {names}", fix=fix)
