"""What the balancer expects of a new node."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from starcluster.aws.model import InstanceType
from starcluster.balance.cell.model import Cell, NewNode, Place, Value
from starcluster.balance.observation.new_node import NewNodes
from starcluster.balance.observation.read import Reading

FACTS = InstanceType(
    name="g5.2xlarge",
    vcpus=8,
    memory_mib=32768,
    architecture="x86_64",
    gpus=1,
    gpu_name="NVIDIA A10G",
)
TOTALS = {"node001": {"gpu": "1", "scratch": "100G"}, "all.q@node001": {"slots": "6"}}


def reading(*places: Place, totals: Mapping[str, Mapping[str, str]] = TOTALS) -> Reading:
    found = frozenset(place.host for place in places if not place.idle)
    return Reading(
        jobs=(), cell=Cell(places=places), totals=totals, running_jobs=len(found), busy=found
    )


def place(host: str, *, idle: bool, slots: str, **values: str) -> Place:
    found = {name: Value(text, "h") for name, text in values.items()}
    found |= {"slots": Value(slots), "h_rt": Value("8:0:0")}
    return Place(queue="all.q", host=host, values=found, idle=idle, environments=frozenset({"smp"}))


MASTER = place("master", idle=False, slots="0", gpu="0", mem_free="1G", site="attic")
BUSY = place("node001", idle=False, slots="0", gpu="0", scratch="0", mem_free="3G", mem_total="31G")
IDLE = place("node001", idle=True, slots="6", gpu="1", scratch="0", mem_free="30G", mem_total="31G")


def texts(node: NewNode) -> dict[str, str]:
    (only,) = node.places
    assert (only.host, only.queue, only.idle, only.usable) == ("", "all.q", True, True)
    assert only.environments == {"smp"}
    return {name: value.text for name, value in only.values.items()}


def test_without_a_node_of_its_type_the_facts_of_aws_count() -> None:
    found = texts(NewNodes().predict(FACTS, (), reading(MASTER)))
    assert (found["slots"], found["gpu"], found["num_proc"]) == ("8", "1", "8")
    assert found["arch"] == "lx-amd64"
    assert 29_000 < float(found["mem_free"].removesuffix("M")) < 32_000
    assert found["h_rt"] == "8:0:0"  # a limit of the queue
    assert "site" not in found  # a value of the master's host


def test_a_gpu_that_grid_engine_does_not_know_is_not_promised() -> None:
    other = InstanceType(
        name="g4ad", vcpus=8, memory_mib=1, architecture="arm64", gpus=1, gpu_name="AMD"
    )
    assert texts(NewNodes().predict(other, (), reading(MASTER)))["gpu"] == "0"


@pytest.mark.parametrize(("now", "free"), [(BUSY, "31G"), (IDLE, "30G")])
def test_a_new_node_is_like_one_of_its_type_without_jobs(now: Place, free: str) -> None:
    found = texts(NewNodes().predict(FACTS, ("node001",), reading(MASTER, now)))
    assert (found["slots"], found["gpu"], found["scratch"]) == ("6", "1", "100G")
    assert found["mem_free"] == free


def test_what_an_idle_node_reported_counts_after_it_is_removed() -> None:
    nodes = NewNodes()
    nodes.predict(FACTS, ("node001",), reading(MASTER, IDLE))
    for now in ((MASTER,), (MASTER, BUSY)):
        found = texts(nodes.predict(FACTS, ("node001",), reading(*now)))
        assert (found["mem_free"], found["scratch"]) == ("30G", "100G")
