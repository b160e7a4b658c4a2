"""Simulate where waiting jobs would start, and on how many new nodes; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from starcluster.balance.cell.capacity import Pools, chunk_of, environments_of
from starcluster.balance.cell.model import Cell, Environment, Job, JobState, NewNode, Place, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Where the waiting jobs would start. Each task of an array job counts as a job.

    Attributes:
        starting: Number of jobs that start on the current nodes.
        growing: Jobs that start if new nodes are added.
        nodes: Number of these nodes.
        excess: Number of jobs that need more new nodes than allowed.
        stuck: Jobs that new nodes do not help, and why.
    """

    starting: int = 0
    growing: tuple[Job, ...] = ()
    nodes: int = 0
    excess: int = 0
    stuck: tuple[tuple[Job, str], ...] = ()


def simulate(cell: Cell, jobs: Iterable[Job], node: NewNode, names: Sequence[str]) -> Forecast:
    """Place the waiting jobs in their order.

    Args:
        names: Host names of new nodes, as many as can be added.
    """
    simulation = _Simulation(cell, node, names)
    for job in jobs:
        if job.state is JobState.WAITING:
            simulation.place(job)
    return simulation.forecast


class _Simulation:
    def __init__(self, cell: Cell, node: NewNode, names: Sequence[str]) -> None:
        self._cell, self._node, self._names = cell, node, names
        self._pools = Pools(cell.attributes)
        self._places = [place for place in cell.places if place.usable]
        self._free = {name: each.free for name, each in cell.environments.items()}
        self._refused: dict[object, str] = {}
        self._added = 0
        self.forecast = Forecast()

    def place(self, job: Job) -> None:
        """Start as many tasks of a job as possible."""
        tasks = job.tasks if job.startable is None else min(job.tasks, job.startable)
        if job.blocked or not tasks:
            self._add(stuck=(job, job.blocked or "its running tasks reach the limit of -tc"))
            return
        alike = (job.pe, job.slots, tuple(job.requests.items()), job.queues)
        here = new = 0
        while here + new < tasks and alike not in self._refused:
            used_new, refusal = self._start(job)
            if refusal is not None:
                self._refused[alike] = refusal
            here, new = here + (used_new is False), new + (used_new is True)
        self._add(starting=here, growing=replace(job, tasks=new) if new else None)
        left = tasks - here - new
        if left and self._refused[alike]:
            self._add(stuck=(replace(job, tasks=left), self._refused[alike]))
        elif left:
            self._add(excess=left)

    def _add(
        self,
        *,
        starting: int = 0,
        growing: Job | None = None,
        excess: int = 0,
        stuck: tuple[Job, str] | None = None,
    ) -> None:
        old = self.forecast
        self.forecast = Forecast(
            starting=old.starting + starting,
            growing=(*old.growing, growing) if growing else old.growing,
            nodes=self._added,
            excess=old.excess + excess,
            stuck=(*old.stuck, stuck) if stuck else old.stuck,
        )

    def _start(self, job: Job) -> tuple[bool | None, str | None]:
        """Start one task; return whether it needed a new node, or why it does not start.

        The reason is empty if only the number of new nodes is too small.
        """
        refusals = []
        for name in environments_of(job, self._cell.environments) if job.pe else [""]:
            environment = self._cell.environments.get(name)
            used_new, refusal = self._start_in(job, name, environment)
            if refusal is None:
                return used_new, None
            refusals.append(refusal)
        if not refusals:
            return None, f"parallel environment {job.pe} does not exist"
        return None, "" if "" in refusals else refusals[0]

    def _start_in(
        self, job: Job, name: str, environment: Environment | None
    ) -> tuple[bool | None, str | None]:
        if environment is not None and self._free[name] < job.slots:
            free = self._free[name]
            return None, f"parallel environment {name} has {free} of {job.slots} slots left"
        chunk = chunk_of(job, environment)
        if job.slots % (chunk or 1):
            return None, f"parallel environment {name} uses {chunk} slots on each host"
        places = self._with(name, self._places)
        count, added = len(self._places), self._added
        while (grants := self._pools.grant(job, places, chunk)) is None:
            fresh = self._fresh()
            refusal = self._refusal(job, name, fresh, chunk or 1)
            if refusal or self._added >= len(self._names):
                del self._places[count:]
                self._added = added
                return None, refusal
            self._places += fresh
            self._added += 1
            places = self._with(name, self._places)
        if environment is not None:
            self._free[name] -= job.slots
        new = set(self._names[: self._added])
        return any(place.host in new for place, _ in grants), None

    def _with(self, environment: str, places: Iterable[Place]) -> list[Place]:
        return [each for each in places if not environment or environment in each.environments]

    def _refusal(self, job: Job, name: str, fresh: Sequence[Place], least: int) -> str:
        """Return why not even the first slots of a job start on an idle new node, or ''."""
        offered = self._with(name, fresh)
        rooms = [self._pools.capacity(job, place, first=True) for place in offered]
        if any(room >= least for room, _ in rooms):
            return ""
        wanted = rooms[0][1] if rooms else f"-pe {job.pe} (its queues do not have it)"
        return f"a new {self._node.kind} node does not satisfy {wanted}"

    def _fresh(self) -> list[Place]:
        """Return the places of the next new node."""
        name = (*self._names, "")[self._added]
        return [
            replace(place, host=name, values={**place.values, "hostname": Value(name)})
            for place in self._node.places
        ]
