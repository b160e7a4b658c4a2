"""Decide when to grow or shrink a cluster according to its queue; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from starcluster.balance.cell.model import Cell, Job, JobState, NewNode
from starcluster.balance.cell.placement import Forecast, simulate
from starcluster.balance.decision.reasons import counted, described, jobs_text, refused


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
        idle_stop_s: Stop the cluster when no job was left for this long; None for never.
        budget: Stop the cluster before it has cost more dollars than this; None for no limit.
        reserve_s: The budget pays for at least this long: until the next decision, and to stop.
    """

    min_nodes: int = 1
    max_nodes: int
    job_wait_s: float = 900.0
    add_nodes_per_iter: int = 1
    kill_after_s: float = 45 * 60.0
    stabilization_s: float = 180.0
    kill_cluster: bool = False
    idle_stop_s: float | None = None
    budget: float | None = None
    reserve_s: float = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a cluster costs, in dollars; instances only, at on-demand prices.

    Attributes:
        spent: Since its start.
        per_hour: Of the current nodes.
        new_node: Of a new node, per hour; 0 if AWS does not report it.
    """

    spent: float = 0.0
    per_hour: float = 0.0
    new_node: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """A cluster and its queue at one moment.

    Attributes:
        jobs: The jobs that do not run, in the order in which Grid Engine starts them.
        cell: The places of the current nodes.
        new_node: A node as the balancer adds it.
        new_names: Host names of the next new nodes; at least as many as can be added.
        running_jobs: Number of running jobs.
        age_s: Time since launch of each node except the master.
        busy: Nodes with running jobs.
        since_change_s: Time since a node was added or removed.
        interrupted: Spot nodes that AWS interrupts within two minutes.
        idle_s: Time since no job is left; 0 if jobs are left.
        costs: What the cluster costs.
    """

    jobs: tuple[Job, ...] = ()
    cell: Cell = field(default_factory=Cell)
    new_node: NewNode = field(default_factory=lambda: NewNode(kind="", places=()))
    new_names: tuple[str, ...] = ()
    running_jobs: int = 0
    age_s: Mapping[str, float] = field(default_factory=dict)
    busy: frozenset[str] = frozenset()
    since_change_s: float = float("inf")
    interrupted: frozenset[str] = frozenset()
    idle_s: float = 0.0
    costs: Costs = field(default_factory=Costs)

    @property
    def jobs_left(self) -> bool:
        """Whether a job runs, waits, is held or is in an error state."""
        return bool(self.jobs or self.running_jobs or self.busy)

    @property
    def waiting_s(self) -> tuple[float, ...]:
        """Wait of each task that is neither held nor in an error state."""
        waiting = [job for job in self.jobs if job.state is JobState.WAITING]
        return tuple(job.waited_s for job in waiting for _ in range(job.tasks))

    @property
    def free_slots(self) -> int:
        """Free slots of the current nodes."""
        return sum(place.free_slots for place in self.cell.places if place.usable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The action to take now, and the reason as text.

    Attributes:
        add: Number of nodes to add.
        remove: Idle nodes to remove.
        drain: Nodes that AWS interrupts: they get no new jobs, and their running jobs are rerun on
            other nodes.
        terminate: Terminate the whole cluster.
        stop: Stop the whole cluster.
        finish: A change that another process began and did not complete.
    """

    add: int = 0
    remove: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    terminate: bool = False
    stop: bool = False
    finish: str = ""
    why: str = "nothing to do"

    @property
    def action(self) -> str:
        """The action in words; ``none`` without one."""
        if self.terminate or self.stop:
            return "terminate" if self.terminate else "stop"
        if self.finish:
            return f"finish: {self.finish}"
        if self.add:
            return f"add {self.add}"
        gone = ", ".join(self.remove or self.drain)
        return f"remove {gone}" if gone else "none"


def decide(snapshot: QueueSnapshot, limits: Limits) -> Decision:
    """Return the action to take.

    It never exceeds the limits, and removes a busy node only if AWS interrupts it. The budget
    comes before all jobs.
    """
    if limits.budget is not None and is_over_budget(snapshot.costs, limits):
        spent = snapshot.costs.spent
        return Decision(
            stop=True, why=f"${spent:.2f} of the budget, ${limits.budget:.2f}, is spent"
        )
    return _afforded(_by_queue(snapshot, limits), snapshot.costs, limits)


def is_over_budget(costs: Costs, limits: Limits) -> bool:
    """Return whether the budget does not pay for the current nodes until the next decision."""
    if limits.budget is None:
        return False
    return costs.spent + costs.per_hour * limits.reserve_s / 3600 >= limits.budget


def _afforded(decision: Decision, costs: Costs, limits: Limits) -> Decision:
    """Return the decision with as many new nodes as the budget pays for an hour."""
    if not decision.add or limits.budget is None or not costs.new_node:
        return decision
    rest = limits.budget - costs.spent
    most = max(int((rest - costs.per_hour) / costs.new_node), 0)
    if most >= decision.add:
        return decision
    why = f"the rest of the budget, ${rest:.2f}, pays for an hour of {most} of them"
    return replace(decision, add=most, why=f"{decision.why}; {why}")


def _by_queue(snapshot: QueueSnapshot, limits: Limits) -> Decision:
    drain = tuple(sorted(snapshot.interrupted & set(snapshot.age_s)))
    size = 1 + len(snapshot.age_s) - len(drain)
    if drain:
        return Decision(drain=drain, why="AWS interrupts these spot nodes")
    if size < limits.min_nodes:
        missing = limits.min_nodes - size
        return Decision(add=missing, why=f"{size} nodes, the minimum is {limits.min_nodes}")
    patience = limits.idle_stop_s
    if patience is not None and snapshot.idle_s >= patience and not snapshot.jobs_left:
        return Decision(stop=True, why=f"no job was left for {snapshot.idle_s / 60:.0f} min")
    if snapshot.since_change_s < limits.stabilization_s:
        return Decision(why="waiting for the last change to take effect")
    names = snapshot.new_names[: max(limits.max_nodes - size, 0)]
    forecast = simulate(snapshot.cell, snapshot.jobs, snapshot.new_node, names)
    return _fewer(snapshot, limits, forecast, size) or _more(snapshot, limits, forecast)


def _more(snapshot: QueueSnapshot, limits: Limits, forecast: Forecast) -> Decision:
    parts: list[str] = []
    add = 0
    if forecast.growing:
        longest = max(job.waited_s for job in forecast.growing)
        count = sum(job.tasks for job in forecast.growing)
        first = described(forecast.growing[0])
        kind = f"{snapshot.new_node.kind} node{'s' if forecast.nodes > 1 else ''}"
        parts.append(f"{jobs_text(count)} ({first}) would start on {forecast.nodes} more {kind}")
        if longest > limits.job_wait_s:
            add = min(forecast.nodes, limits.add_nodes_per_iter)
        else:
            parts.append(f"the longest wait is {longest:.0f} s of {limits.job_wait_s:g} s")
    if forecast.starting:
        parts.append(f"{jobs_text(forecast.starting)} can start on the current nodes")
    parts += _not_starting(forecast, limits)
    if not parts and snapshot.jobs and limits.kill_cluster:
        parts.append(f"{counted(snapshot.jobs)} left, so the cluster is not terminated")
    return Decision(add=add, why="; ".join(parts) or Decision().why)


def _not_starting(forecast: Forecast, limits: Limits) -> list[str]:
    excess = f"{jobs_text(forecast.excess)} cannot start, the maximum is {limits.max_nodes} nodes"
    return [*([excess] if forecast.excess else []), *refused(forecast.stuck)]


def _fewer(
    snapshot: QueueSnapshot, limits: Limits, forecast: Forecast, size: int
) -> Decision | None:
    # Without a running job, what does not start now does not start later on these nodes either.
    later = forecast.excess and snapshot.running_jobs
    if forecast.starting or forecast.growing or later:
        return None
    idle = [
        name
        for name, age in sorted(snapshot.age_s.items(), key=lambda item: -item[1])
        if name not in snapshot.busy and age >= limits.kill_after_s
    ]
    remove = tuple(idle[: max(size - limits.min_nodes, 0)])
    if remove:
        why = "these nodes are idle and no waiting job can use them"
        return Decision(remove=remove, why="; ".join([why, *_not_starting(forecast, limits)]))
    if limits.kill_cluster and not snapshot.jobs_left:
        oldest = max(snapshot.age_s.values(), default=float("inf"))
        if oldest >= limits.kill_after_s:
            return Decision(terminate=True, why="no job is left")
    return None
