"""When to grow and shrink a cluster by its queue: one pure decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a decision keeps to.

    Attributes:
        min_nodes, max_nodes: Of the cluster, the master among them.
        job_wait_s: A job that waits longer lets the cluster grow.
        add_nodes_per_iter: Nodes to be added at once, at most.
        kill_after_s: A node is removed only when it is older, unless it is on the point of it.
        stabilization_s: After a change nothing is done for so long.
        kill_cluster: Whether the cluster ends when nothing is left to do.
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
        waiting_s: Of each waiting job that could ever run, how long it has waited.
        slots_per_node: Jobs that a new node takes; at least 1.
        free_slots: Jobs that the nodes there are could take now.
        running_jobs: All that run.
        age_s: Of each node but the master, since its launch.
        busy: Nodes with a job on them.
        since_change_s: Since a node was added or removed.
        interrupted: Spot nodes that AWS takes away within two minutes.
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
    """What to do now, and why, for people.

    Attributes:
        add: Nodes to add.
        remove: Nodes to remove; none has a job.
        drain: Nodes that AWS takes away: no new jobs, those that run begin again elsewhere.
        terminate: Whether to end the whole cluster.
    """

    add: int = 0
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    terminate: bool = False
    why: str = "nothing to do"


def decide(snapshot: QueueSnapshot, limits: Limits) -> Decision:
    """Return what to do; never removes a node with a job, never leaves the limits."""
    drain = tuple(sorted(snapshot.interrupted & set(snapshot.age_s)))
    size = 1 + len(snapshot.age_s) - len(drain)
    if drain:
        return Decision(drain=drain, why="AWS takes these spot nodes away")
    if size < limits.min_nodes:
        missing = limits.min_nodes - size
        return Decision(add=missing, why=f"{size} nodes, at least {limits.min_nodes} are wanted")
    if snapshot.since_change_s < limits.stabilization_s:
        return Decision(why="waiting for the last change to show")
    return _more(snapshot, limits, size) or _fewer(snapshot, limits, size) or Decision()


def _more(snapshot: QueueSnapshot, limits: Limits, size: int) -> Decision | None:
    late = sum(waited > limits.job_wait_s for waited in snapshot.waiting_s)
    if not late or snapshot.free_slots:  # a free slot takes the next job
        return None
    if size >= limits.max_nodes:
        return Decision(why=f"{late} jobs wait, but there are {size} nodes already")
    wanted = -(-len(snapshot.waiting_s) // max(snapshot.slots_per_node, 1))
    add = min(wanted, limits.add_nodes_per_iter, limits.max_nodes - size)
    return Decision(add=add, why=f"{late} jobs wait longer than {limits.job_wait_s:g} s")


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
        return Decision(remove=remove, why="no job waits, and these have none")
    if limits.kill_cluster and not snapshot.running_jobs and not snapshot.busy:
        oldest = max(snapshot.age_s.values(), default=float("inf"))
        if oldest >= limits.kill_after_s:
            return Decision(terminate=True, why="no job is left")
    return None
