"""Problems of hosts and of their queue instances."""

from __future__ import annotations

from collections.abc import Iterator

from sge_jobs.cell.problem import Problem
from sge_jobs.cell.qconf_text import CellConfig, cluster_default, list_items
from sge_jobs.model import Host

_STATES = (
    (
        "aA",
        "queue {} is in state a (alarm) and starts no jobs: its host's load exceeds a threshold",
        "Show the threshold: qstat -f -explain a -q {0}    Remove it for GPU hosts: sge-jobs setup",
    ),
    (
        "E",
        "queue {} is in state E (error) and starts no jobs: a job failed to start there",
        "Show the reason: qstat -f -explain E -q {0}    After the fix: qmod -cq {0}",
    ),
    ("d", "queue {} is disabled", "qmod -e {0}"),
    ("D", "queue {0} is disabled by its calendar {2}", "Show it: qconf -scal {2}"),
    ("s", "queue {} is suspended", "qmod -usq {0}"),
    ("C", "queue {0} is suspended by its calendar {2}", "Show it: qconf -scal {2}"),
    ("S", "queue {} is suspended by another queue", "Show its jobs: qstat -f -q *@{3}"),
    ("c", "queue {} has an ambiguous configuration", "qstat -f -explain c -q {0}"),
    ("o", "queue {} no longer has this host, but a job of it still runs", "qdel JOB, or wait"),
)


def host_problems(cell: CellConfig, host: Host) -> Iterator[Problem]:
    """Yield why a host does not respond or is in no queue."""
    if not host.reachable:
        yield Problem(
            what=f"host {host.name} does not respond",
            fix=f"On {host.name}: systemctl restart gridengine-exec; its log is in"
            " /var/spool/gridengine/execd. If the host no longer exists: "
            + removal(cell, host.name),
        )
    elif not host.queues:
        yield Problem(
            what=f"host {host.name} is in no queue",
            fix=f"qconf -aattr hostgroup hostlist {host.name} @allhosts",
        )


def removal(cell: CellConfig, host: str) -> str:
    """Return the commands that remove a host: qconf refuses while something refers to it."""
    references = [("hostgroup", name, group) for name, group in cell.host_groups.items()]
    references += [("queue", name, queue) for name, queue in cell.queues.items()]
    calls = [
        f"qconf -dattr {kind} hostlist {host} {name}"
        for kind, name, attributes in references
        if host in list_items(cluster_default(attributes.get("hostlist", "")))
    ]
    return " && ".join([*calls, f"qconf -de {host}"])


def state_problems(cell: CellConfig, host: Host) -> Iterator[Problem]:
    """Yield the queue instances of a host that start no jobs."""
    for queue in host.queues:
        name = f"{queue.name}@{host.name}"
        calendar = cluster_default(cell.queues.get(queue.name, {}).get("calendar", "NONE"))
        names = (name, queue.name, calendar, host.name)
        for letters, what, fix in _STATES:
            if letters == "aA" and not host.reachable:
                continue  # a host that does not respond is always in alarm
            if any(letter in queue.state for letter in letters):
                yield Problem(what=what.format(*names), fix=fix.format(*names))
        if queue.slots == 0:
            yield Problem(
                what=f"queue {name} has no slots",
                fix=f"qconf -rattr queue slots NUMBER {queue.name}",
            )
