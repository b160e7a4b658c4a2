"""Decide if a job waits because the cell is busy, or because it can never start."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sge_jobs.model import Obstacle
from sge_jobs.queue.commands import Commands
from sge_jobs.queue.obstacles.fixes import CLOSED, PASSING, request_fix, state_fix, state_reason
from sge_jobs.queue.obstacles.verification import ANYWHERE, Verification, verify
from sge_jobs.queue.qhost import parse_hosts
from sge_jobs.queue.qstat import read_xml
from sge_jobs.sizes import read_size

# A verification ignores the load of hosts. What a host has free is at most what it has in total.
_TOTALS = {"mem_free": "mem_total", "swap_free": "swap_total", "virtual_free": "virtual_total"}


def find_obstacle(commands: Commands, id: str) -> Obstacle | None:
    """Return why the waiting job ``id`` cannot start, whatever other jobs do; None if it can.

    Raises:
        QueueUnreachable: The master does not respond.
    """
    found, requests = verify(commands, id), []
    if unknown := _measured(commands, id, found):
        if obstacle := _too_large(commands, id, found, unknown):
            return obstacle
        kept = [item for item in found.requests if item.partition("=")[0] not in unknown]
        requests = [*kept, ANYWHERE]
        found = verify(commands, id, requests=requests)
    if not found.fits:
        fix = request_fix("\n".join(found.reasons))
        return Obstacle(reason=found.text, fix=fix, key=found.key)
    return _closed(commands, id, requests)


def _measured(commands: Commands, id: str, found: Verification) -> set[str]:
    """Return the requested resources that only the load reports of hosts give."""
    if found.fits or not found.unknown:
        return set()
    return found.unknown - verify(commands, id, with_load=True).unknown


def _too_large(
    commands: Commands, id: str, found: Verification, unknown: set[str]
) -> Obstacle | None:
    """Return the obstacle of a request for more than any host has in total."""
    for name, _, text in (item.partition("=") for item in found.requests):
        total = _TOTALS.get(name) if name in unknown else None
        largest = _largest(commands, total) if total else None
        if largest is None or bytes_of(text) <= largest:
            continue
        size = f"{largest / 2**30:.1f}G"
        return Obstacle(
            reason=f"(-l {name}={text}) cannot run at any host because it offers at most"
            f" {total}={size}",
            fix=f"Request less, or show what hosts have: qhost -F {name},{total}",
            key=f"{name}={text}",
        )
    return None


def _largest(commands: Commands, resource: str) -> float | None:
    root = read_xml(commands.ask("qhost", "-xml", "-F", resource), "qhost")
    values = [
        bytes_of((value.text or "").strip())
        for value in root.iter("resourcevalue")
        if value.get("name") == resource
    ]
    return max(values, default=None)


def bytes_of(text: str) -> float:
    """Return the bytes of ``8G`` or ``500M``; 0 for other text."""
    try:
        return read_size(text)
    except ValueError:
        return 0.0


def _closed(commands: Commands, id: str, requests: list[str]) -> Obstacle | None:
    """Return the obstacle if no open queue instance could run the job."""
    states = _instances(commands, id)
    closed = {name: state for name, state in states.items() if set(state) & set(CLOSED)}
    opened = [name for name in states if name not in closed]
    if not closed or (opened and verify(commands, id, requests=requests, queues=opened).fits):
        return None
    passing = [
        name for name, state in closed.items() if not set(state) & set(CLOSED) - set(PASSING)
    ]
    passes = (
        bool(passing) and verify(commands, id, requests=requests, queues=[*opened, *passing]).fits
    )
    shown = {name: state for name, state in closed.items() if not passes or name in passing}
    letters = sorted({letter for state in shown.values() for letter in state})
    reason, fix = state_reason(shown), state_fix(shown)
    return Obstacle(reason=reason, fix=fix, key="".join(letters), passes=passes)


def _instances(commands: Commands, id: str) -> Mapping[str, str]:
    """Return the states of the queue instances that the job accepts, by name."""
    hosts = parse_hosts(commands.ask("qhost", "-xml", "-q"), [])
    states = {f"{queue.name}@{host.name}": queue.state for host in hosts for queue in host.queues}
    described = commands.run("qstat", "-xml", "-j", id).out
    wanted = re.findall(r"<QR_name>([^<]+)</QR_name>", _hard_queues(described))
    if not wanted:
        return states
    names = commands.run("qselect", "-q", ",".join(wanted)).out.split()
    return {name: states[name] for name in names if name in states}


def _hard_queues(xml: str) -> str:
    found = re.search(r"<JB_hard_queue_list>(.*?)</JB_hard_queue_list>", xml, re.DOTALL)
    return found[1] if found else ""
