"""Decide when to grow or shrink a cluster according to its queue; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of all decisions.

    Attributes:
        min_nodes, max_nodes: Size of the cluster, including the master.
        job_wait_s: The cluster grows when a job has waited longer.
        add_nodes_per_iter: Most nodes to add in one decision.
        kill_after_s: Only older nodes are removed.
        stabilization_s: Pause after a change of the cluster.
        kill_cluster: Terminate the cluster when no jobs are left.
    """

    min_nodes: int = 1
    max_nodes: int
    job_wait_s: float = 900.0
    add_nodes_per_iter: int = 1
    kill_after_s: float = 45 * 60.0
    stabilization_s: float = 180.0
    kill_cluster: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """A cluster and its queue at one moment.

    Attributes:
        waiting_s: Wait of each pending job that is able to run.
        slots_per_node: Slots of a new node; at least 1.
        free_slots: Free slots of the current nodes.
        running_jobs: Number of running jobs.
        age_s: Time since launch of each node except the master.
        busy: Nodes with running jobs.
        since_change_s: Time since a node was added or removed.
        interrupted: Spot nodes that AWS interrupts within two minutes.
    """

    waiting_s: tuple[float, ...] = ()
    slots_per_node: int = 1
    free_slots: int = 0
    running_jobs: int = 0
    age_s: Mapping[str, float] = field(default_factory=dict)
    busy: frozenset[str] = frozenset()
    since_change_s: float = float("inf")
    interrupted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The action to take now, and the reason as text.

    Attributes:
        add: Number of nodes to add.
        remove: Idle nodes to remove.
        drain: Nodes that AWS interrupts: they get no new jobs, and their running jobs are rerun on
            other nodes.
        terminate: Terminate the whole cluster.
    """

    add: int = 0
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    terminate: bool = False
    why: str = "nothing to do"


def decide(snapshot: QueueSnapshot, limits: Limits) -> Decision:
    """Return the action to take. It never removes a busy node and never exceeds the limits."""
    drain = tuple(sorted(snapshot.interrupted & set(snapshot.age_s)))
    size = 1 + len(snapshot.age_s) - len(drain)
    if drain:
        return Decision(drain=drain, why="AWS interrupts these spot nodes")
    if size < limits.min_nodes:
        missing = limits.min_nodes - size
        return Decision(add=missing, why=f"{size} nodes, the minimum is {limits.min_nodes}")
    if snapshot.since_change_s < limits.stabilization_s:
        return Decision(why="waiting for the last change to take effect")
    return _more(snapshot, limits, size) or _fewer(snapshot, limits, size) or Decision()


def _more(snapshot: QueueSnapshot, limits: Limits, size: int) -> Decision | None:
    late = sum(waited > limits.job_wait_s for waited in snapshot.waiting_s)
    if not late or snapshot.free_slots:  # a free slot takes the next job
        return None
    if size >= limits.max_nodes:
        return Decision(why=f"{late} jobs wait, but the maximum is {limits.max_nodes} nodes")
    wanted = -(-len(snapshot.waiting_s) // max(snapshot.slots_per_node, 1))
    add = min(wanted, limits.add_nodes_per_iter, limits.max_nodes - size)
    return Decision(add=add, why=f"{late} jobs have waited longer than {limits.job_wait_s:g} s")


def _fewer(snapshot: QueueSnapshot, limits: Limits, size: int) -> Decision | None:
    if snapshot.waiting_s:
        return None
    idle = [
        name
        for name, age in sorted(snapshot.age_s.items(), key=lambda item: -item[1])
        if name not in snapshot.busy and age >= limits.kill_after_s
    ]
    remove = tuple(idle[: max(size - limits.min_nodes, 0)])
    if remove:
        return Decision(remove=remove, why="no job waits and these nodes are idle")
    if limits.kill_cluster and not snapshot.running_jobs and not snapshot.busy:
        oldest = max(snapshot.age_s.values(), default=float("inf"))
        if oldest >= limits.kill_after_s:
            return Decision(terminate=True, why="no job is left")
    return None
