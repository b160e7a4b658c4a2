"""States of a queue with the decision of the balancer; the table of the docs is made of them.

python -m tests.starcluster.balance.queue_states
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from starcluster.balance.cell.model import (
    Attribute,
    Cell,
    Environment,
    Job,
    JobState,
    NewNode,
    Place,
    Value,
)
from starcluster.balance.decision.decide import Decision, Limits, QueueSnapshot

TABLE = Path(__file__).parents[3] / "docs/_tables/loadbalance.rst"
KIND = "g4dn.xlarge"
HELD, ERROR = JobState.HELD, JobState.ERROR

ATTRIBUTES = {
    name: Attribute(kind=kind, relation=relation, consumable=consumable)
    for name, kind, relation, consumable in (
        ("slots", "INT", "<=", "YES"),
        ("gpu", "INT", "<=", "JOB"),
        ("ram", "MEMORY", "<=", "YES"),
        ("licence", "INT", "<=", "YES"),
        ("mem_free", "MEMORY", "<=", "NO"),
        ("h_rt", "TIME", "<=", "NO"),
        ("arch", "STRING", "==", "NO"),
        ("hostname", "HOST", "==", "NO"),
    )
}
ENVIRONMENTS = {
    "smp": Environment(rule="$pe_slots", free=999),
    "orte": Environment(rule="$fill_up", free=999),
    "two": Environment(rule="2", free=999),
    "few": Environment(rule="$round_robin", free=4),
}


def place(host: str, *, slots: int = 4, gpu: int = 1, busy: bool = False, **more: Any) -> Place:
    """Return ``all.q@HOST`` with what is left of its consumables."""
    left = {"slots": str(slots)}
    of_host = {"gpu": str(gpu), "ram": "16G", "mem_free": "15G", "arch": "lx-amd64"}
    values = {name: Value(text) for name, text in left.items()}
    values |= {name: Value(text, "h") for name, text in of_host.items()}
    values |= {"h_rt": Value("infinity"), "hostname": Value(host), "licence": Value("0", "g")}
    environments = frozenset(ENVIRONMENTS)
    return Place(
        queue="all.q", host=host, values=values, environments=environments, idle=not busy, **more
    )


def busy_gpus() -> tuple[Place, ...]:
    """Return a master and a node, each with a job on its GPU and three free slots."""
    return tuple(place(host, slots=3, gpu=0, busy=True) for host in ("master", "node001"))


def full() -> tuple[Place, ...]:
    """Return a master and a node without a free slot."""
    return tuple(place(host, slots=0, gpu=0, busy=True) for host in ("master", "node001"))


def idle() -> tuple[Place, ...]:
    """Return a master and a node without jobs."""
    return tuple(place(host) for host in ("master", "node001"))


def job(id: int, *, waited_s: float = 1000.0, **more: Any) -> Job:
    """Return a job that waits longer than the balancer tolerates."""
    return Job(id=str(id), waited_s=waited_s, **more)


def gpu_jobs(count: int, **more: Any) -> tuple[Job, ...]:
    """Return jobs that ask for a GPU."""
    return tuple(job(3 + number, requests={"gpu": "1"}, **more) for number in range(count))


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state of the queue and the decision.

    Attributes:
        queue: The state in words of the docs.
    """

    queue: str
    places: tuple[Place, ...]
    jobs: tuple[Job, ...] = ()
    running: int = 2
    limits: dict[str, Any] = field(default_factory=dict)
    expected: Decision

    def snapshot(self) -> QueueSnapshot:
        nodes = [each for each in self.places if each.host != "master"]
        hosts = {each.host for each in nodes}
        return QueueSnapshot(
            jobs=self.jobs,
            cell=Cell(places=self.places, attributes=ATTRIBUTES, environments=ENVIRONMENTS),
            new_node=NewNode(kind=KIND, places=(place(""),)),
            new_names=tuple(f"node{number:03d}" for number in range(len(hosts) + 1, 100)),
            running_jobs=self.running,
            age_s=dict.fromkeys(sorted(hosts), 7200.0),
            busy=frozenset(each.host for each in self.places if not each.idle),
        )

    def all_limits(self) -> Limits:
        usual: dict[str, Any] = {"max_nodes": 8, "add_nodes_per_iter": 8}
        return Limits(**usual | self.limits)


def grows(nodes: int, why: str) -> Decision:
    return Decision(add=nodes, why=why)


def stays(why: str = "nothing to do") -> Decision:
    return Decision(why=why)


def unsatisfied(what: str, has: str) -> str:
    return f"a new {KIND} node does not satisfy {what} ({has})"


IDLE = "these nodes are idle and no waiting job can use them"
SHRINKS = Decision(remove=("node001",), why=IDLE)
KILL = {"kill_cluster": True}

STATES = (
    State(
        queue="2 jobs run on 2 GPUs, 4 wait for ``-l gpu=1``; CPU slots are free",
        places=busy_gpus(),
        jobs=gpu_jobs(4),
        expected=grows(4, f"4 jobs (job 3: -l gpu=1) would start on 4 more {KIND} nodes"),
    ),
    State(
        queue="The same, with ``-a 1``",
        places=busy_gpus(),
        jobs=gpu_jobs(4),
        limits={"add_nodes_per_iter": 1},
        expected=grows(1, f"4 jobs (job 3: -l gpu=1) would start on 4 more {KIND} nodes"),
    ),
    State(
        queue="The same, with ``-m 4``",
        places=busy_gpus(),
        jobs=gpu_jobs(4),
        limits={"max_nodes": 4},
        expected=grows(
            2,
            f"2 jobs (job 3: -l gpu=1) would start on 2 more {KIND} nodes; "
            "2 jobs cannot start, the maximum is 4 nodes",
        ),
    ),
    State(
        queue="The same, with ``-m 2``",
        places=busy_gpus(),
        jobs=gpu_jobs(4),
        limits={"max_nodes": 2},
        expected=stays("4 jobs cannot start, the maximum is 2 nodes"),
    ),
    State(
        queue="The same, but the jobs wait for 60 s",
        places=busy_gpus(),
        jobs=gpu_jobs(4, waited_s=60.0),
        expected=stays(
            f"4 jobs (job 3: -l gpu=1) would start on 4 more {KIND} nodes; "
            "the longest wait is 60 s of 900 s"
        ),
    ),
    State(
        queue="2 jobs run on 2 GPUs, one job waits for a slot; slots are free",
        places=busy_gpus(),
        jobs=(job(3),),
        expected=stays("1 job can start on the current nodes"),
    ),
    State(
        queue="All slots are in use, 9 jobs of one slot wait",
        places=full(),
        jobs=tuple(job(3 + number) for number in range(9)),
        expected=grows(3, f"9 jobs (job 3: 1 slot) would start on 3 more {KIND} nodes"),
    ),
    State(
        queue="All slots are in use, an array job of 100 tasks waits",
        places=full(),
        jobs=(job(3, tasks=100),),
        expected=grows(
            6,
            f"24 jobs (job 3: 1 slot) would start on 6 more {KIND} nodes; "
            "76 jobs cannot start, the maximum is 8 nodes",
        ),
    ),
    State(
        queue="The same array job, with ``-tc 2`` and 2 running tasks",
        places=full(),
        jobs=(job(3, tasks=98, startable=0),),
        expected=stays("job 3 waits: its running tasks reach the limit of -tc"),
    ),
    State(
        queue="2 nodes with 2 free slots each, a job waits for ``-pe smp 4``",
        places=tuple(place(host, slots=2, busy=True) for host in ("master", "node001")),
        jobs=(job(3, pe="smp", slots=4),),
        expected=grows(1, f"1 job (job 3: -pe smp 4) would start on 1 more {KIND} node"),
    ),
    State(
        queue="The same nodes, a job waits for ``-pe orte 4`` (``$fill_up``)",
        places=tuple(place(host, slots=2, busy=True) for host in ("master", "node001")),
        jobs=(job(3, pe="orte", slots=4),),
        expected=stays("1 job can start on the current nodes"),
    ),
    State(
        queue="The same nodes, a job waits for ``-pe orte 12``",
        places=tuple(place(host, slots=2, busy=True) for host in ("master", "node001")),
        jobs=(job(3, pe="orte", slots=12),),
        expected=grows(2, f"1 job (job 3: -pe orte 12) would start on 2 more {KIND} nodes"),
    ),
    State(
        queue="All slots are in use, a job waits for ``-pe two 6`` (2 slots on each host)",
        places=full(),
        jobs=(job(3, pe="two", slots=6),),
        expected=grows(3, f"1 job (job 3: -pe two 6) would start on 3 more {KIND} nodes"),
    ),
    State(
        queue="A job waits for ``-pe smp 8``; a node has 4 slots",
        places=busy_gpus(),
        jobs=(job(3, pe="smp", slots=8),),
        expected=stays(f"job 3 waits: {unsatisfied('8 slots', 'it has 4')}"),
    ),
    State(
        queue="A job waits for ``-pe orte 99``, more than 8 nodes have",
        places=full(),
        jobs=(job(3, pe="orte", slots=99),),
        expected=stays("1 job cannot start, the maximum is 8 nodes"),
    ),
    State(
        queue="A job waits for 6 slots of a parallel environment with 4 slots in all",
        places=busy_gpus(),
        jobs=(job(3, pe="few", slots=6),),
        expected=stays("job 3 waits: parallel environment few has 4 of 6 slots left"),
    ),
    State(
        queue="A job waits for ``-l gpu=2``; a node has one GPU",
        places=busy_gpus(),
        jobs=(job(3, requests={"gpu": "2"}),),
        expected=stays(f"job 3 waits: {unsatisfied('gpu=2', 'it has 1')}"),
    ),
    State(
        queue="A job waits for ``-l mem_free=64G``; a node has 15 GiB",
        places=busy_gpus(),
        jobs=(job(3, requests={"mem_free": "64G"}),),
        expected=stays(f"job 3 waits: {unsatisfied('mem_free=64G', 'it has 15G')}"),
    ),
    State(
        queue="The same, but all nodes are idle",
        places=idle(),
        jobs=(job(3, requests={"mem_free": "64G"}),),
        running=0,
        expected=replace(
            SHRINKS, why=f"{IDLE}; job 3 waits: {unsatisfied('mem_free=64G', 'it has 15G')}"
        ),
    ),
    State(
        queue="A job waits for ``-pe smp 2 -l ram=6G`` per slot; a node has 16 GiB, 1 is full",
        places=full(),
        jobs=(job(3, pe="smp", slots=2, requests={"ram": "6G"}),),
        expected=grows(1, f"1 job (job 3: -pe smp 2 -l ram=6G) would start on 1 more {KIND} node"),
    ),
    State(
        queue="A job waits for ``-l h=node001``, which is full",
        places=full(),
        jobs=(job(3, requests={"hostname": "node001"}),),
        expected=stays(f"job 3 waits: {unsatisfied('hostname=node001', 'it has node002')}"),
    ),
    State(
        queue="A job waits for ``-q big.q``, which new nodes do not have",
        places=busy_gpus(),
        jobs=(job(3, queues=("big.q",)),),
        expected=stays(f"job 3 waits: a new {KIND} node does not satisfy -q big.q"),
    ),
    State(
        queue="A job waits for a licence that the whole cell shares",
        places=busy_gpus(),
        jobs=(job(3, requests={"licence": "1"}),),
        expected=stays(f"job 3 waits: {unsatisfied('licence=1', 'the cell has 0 left')}"),
    ),
    State(
        queue="A job waits because its user has reached a resource quota",
        places=full(),
        jobs=(job(3, blocked="it reaches resource quota slots_per_user"),),
        expected=stays("job 3 waits: it reaches resource quota slots_per_user"),
    ),
    State(
        queue="2 GPUs are in use, and an impossible job waits before a possible one",
        places=busy_gpus(),
        jobs=(job(3, requests={"gpu": "8"}), job(4, requests={"gpu": "1"})),
        expected=grows(
            1,
            f"1 job (job 4: -l gpu=1) would start on 1 more {KIND} node; "
            f"job 3 waits: {unsatisfied('gpu=8', 'it has 1')}",
        ),
    ),
    State(
        queue="The only node with a free GPU is disabled, a job waits for ``-l gpu=1``",
        places=(
            place("master", slots=3, gpu=0, busy=True),
            replace(place("node001", busy=True), usable=False),
        ),
        jobs=gpu_jobs(1),
        expected=grows(1, f"1 job (job 3: -l gpu=1) would start on 1 more {KIND} node"),
    ),
    State(
        queue="All nodes are idle, no job waits",
        places=idle(),
        running=0,
        expected=SHRINKS,
    ),
    State(
        queue="All nodes are idle, one job is held and one is in an error state",
        places=idle(),
        jobs=(job(3, state=HELD), job(4, state=ERROR)),
        running=0,
        expected=SHRINKS,
    ),
    State(
        queue="Only the master is left, with ``-K`` and a held and an error job",
        places=idle()[:1],
        jobs=(job(3, state=HELD), job(4, state=ERROR)),
        running=0,
        limits=KILL,
        expected=stays("1 held job and 1 error job are left, so the cluster is not terminated"),
    ),
    State(
        queue="The same with one error job",
        places=idle()[:1],
        jobs=(job(4, state=ERROR),),
        running=0,
        limits=KILL,
        expected=stays("1 error job is left, so the cluster is not terminated"),
    ),
    State(
        queue="Only the master is left, with ``-K`` and no job",
        places=idle()[:1],
        running=0,
        limits=KILL,
        expected=Decision(terminate=True, why="no job is left"),
    ),
)


def action(decision: Decision) -> str:
    """Return a decision in words of the docs."""
    if decision.add:
        return f"add {decision.add}"
    if decision.terminate:
        return "terminate"
    return f"remove {', '.join(decision.remove)}" if decision.remove else "none"


def table() -> str:
    """Return the table of the docs."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield ".. list-table::"
    yield from ("   :header-rows: 1", "   :widths: 42 16 42", "")
    yield from ("   * - Queue", "     - Action", "     - Reason")
    for state in STATES:
        yield f"   * - {state.queue}"
        yield f"     - {action(state.expected)}"
        yield f"     - {state.expected.why}"


if __name__ == "__main__":
    TABLE.write_text(table())
