"""What the balancer reads from a real Grid Engine, and decides on it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from starcluster.aws.model import InstanceType
from starcluster.balance import Decision, Limits, QueueSnapshot, decide
from starcluster.balance.cell.model import Job, JobState
from starcluster.balance.observation.new_node import NewNodes
from starcluster.balance.observation.read import Reading, command, read
from tests.testbed.cell import Cell
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]

TYPE = InstanceType(
    name="g4dn.xlarge", vcpus=4, memory_mib=16384, architecture="x86_64", gpus=1, gpu_name="NVIDIA"
)
SLEEP = "sleep 600\n"


@pytest.fixture(scope="module")
def gpu_cell() -> Iterator[Cell]:
    with Cell(2, gpus=1, slots=4) as cell:
        yield cell


@pytest.fixture
def two(gpu_cell: Cell) -> Iterator[Cell]:
    """A cell of two hosts with a GPU each, without jobs."""
    yield gpu_cell
    gpu_cell.run("qdel", "-u", "*")
    gpu_cell.wait_idle()


def reading(cell: Cell) -> Reading:
    text = cell.checked("sh", "-c", command(["node001"]))
    return read(text, datetime.now(UTC).replace(tzinfo=None))


def jobs(cell: Cell) -> dict[str, Job]:
    return {job.id: job for job in reading(cell).jobs}


def decision(cell: Cell, hosts: tuple[str, ...] = ("node001",), **limits: bool) -> Decision:
    found = reading(cell)
    snapshot = QueueSnapshot(
        jobs=found.jobs,
        cell=found.cell,
        new_node=NewNodes().predict(TYPE, hosts, found),
        new_names=tuple(f"node{number:03d}" for number in range(2, 9)),
        running_jobs=found.running_jobs,
        age_s={"node001": 1.0},
        busy=found.busy,
    )
    return decide(snapshot, Limits(max_nodes=9, job_wait_s=-60, add_nodes_per_iter=9, **limits))


def running(cell: Cell) -> int:
    return reading(cell).running_jobs


def test_gpu_jobs_that_wait_let_a_cluster_with_free_slots_grow(two: Cell) -> None:
    for _ in range(6):
        two.submit(SLEEP, "-l", "gpu=1")
    until(lambda: running(two) == 2, 60, 0.2)
    assert sum(place.free_slots for place in reading(two).cell.places) == 6
    assert decision(two).add == 4
    assert decision(two, hosts=()).add == 4  # the first node of its type
    two.qconf("-mattr", "exechost", "complex_values", "gpu=2", "node001")
    try:
        until(lambda: running(two) == 3, 30, 0.2)
        assert decision(two).add == 2  # a new node will have two GPUs as well
    finally:
        two.qconf("-mattr", "exechost", "complex_values", "gpu=1", "node001")


def test_jobs_that_no_new_node_helps_are_told_apart(two: Cell) -> None:
    held = two.submit(SLEEP, "-h")
    broken = two.submit("x", "-o", "/nonexistent/y")
    # While Grid Engine tries to start it, the job is not among those that wait.
    until(
        lambda: [job.state for id, job in jobs(two).items() if id == broken] == [JobState.ERROR],
        30,
        0.2,
    )
    fill = [two.submit(SLEEP, "-pe", "smp", "4") for _ in range(2)]
    until(lambda: running(two) == 2, 60, 0.2)
    later = two.submit(SLEEP, "-a", "203001020304")
    memory = two.submit(SLEEP, "-l", "mem_free=900G,h_rt=1:0:0", "-soft", "-l", "num_proc=99")
    here = two.submit(SLEEP, "-q", "all.q@node001", "-l", "h=node00*")
    wide = two.submit(SLEEP, "-pe", "smp", "5-9")
    good = two.submit(SLEEP, "-pe", "smp", "2-4", "-l", "h=node*")
    found = jobs(two)
    assert found[held].state is JobState.HELD
    assert not {*fill} & found.keys()
    assert found[memory].requests == {"mem_free": "900G", "h_rt": "3600"}
    assert (found[wide].pe, found[wide].slots, found[good].slots) == ("smp", 5, 2)
    made = decision(two)
    assert made.add == 1
    assert f"(job {good}: " in made.why
    for id, why in (
        (later, "2030-01-02 03:04"),
        (memory, "mem_free=900G"),
        (here, "-q all.q@node001"),
        (wide, "5 slots"),
    ):
        assert any(f"job {id} waits" in part and why in part for part in made.why.split("; "))
    for id in (later, memory, here, wide, good, *fill):
        two.run("qdel", id)
    until(lambda: running(two) == 0, 60, 0.2)
    assert not decision(two, kill_cluster=True).terminate
    two.run("qdel", broken)
    until(lambda: broken not in jobs(two), 30, 0.2)
    assert not decision(two, kill_cluster=True).terminate


def test_limits_of_array_jobs_and_quotas_are_not_mistaken_for_a_lack_of_nodes(two: Cell) -> None:
    array = two.submit(SLEEP, "-t", "1-20:2", "-tc", "3").partition(".")[0]
    until(lambda: running(two) == 3, 60, 0.2)
    assert (jobs(two)[array].tasks, jobs(two)[array].startable) == (7, 0)
    assert decision(two).add == 0
    quota = "{\nname few\nenabled TRUE\nlimit users {*} to slots=3\n}\n"
    two.qconf_file("-Arqs", quota)
    try:
        blocked = two.submit(SLEEP, "-pe", "smp", "4")
        until(lambda: "few" in jobs(two)[blocked].blocked, 30, 0.2)
        assert decision(two).add == 0
    finally:
        two.qconf("-drqs", "few")
    until(lambda: blocked not in jobs(two) or not jobs(two)[blocked].blocked, 30, 0.2)


def test_a_disabled_queue_is_not_a_place(two: Cell) -> None:
    for host in ("master", "node001"):
        two.run("qmod", "-d", f"all.q@{host}")
    try:
        two.submit(SLEEP, "-t", "1-8")
        until(lambda: not any(place.usable for place in reading(two).cell.places), 30, 0.2)
        assert decision(two).add == 2
    finally:
        two.run("qmod", "-e", "*")
