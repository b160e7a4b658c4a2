"""A host whose starter cannot work leaves the rotation, and returns when it can."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.on_hosts.cell_commands import command, listed, problems
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge


@pytest.fixture
def sick(cell: Cell) -> Iterator[Node]:
    """A host whose declared GPUs are gone, as after a crash of the driver."""
    node = cell.fabric.nodes["node001"]
    declared = node.inside("/etc/sge-gpus").read_text()
    node.write("/etc/sge-gpus", "count = 0\n")
    yield node
    node.write("/etc/sge-gpus", declared)
    until(lambda: rows(cell)["node001"] == {"free"}, 90, 0.5)


def rows(cell: Cell) -> dict[str, set[str]]:
    """Return the statuses of the GPUs by host."""
    found: dict[str, set[str]] = {}
    for row in json.loads(command(cell, "gpus", "--json").stdout):
        found.setdefault(row["host"], set()).add(row["status"])
    return found


def fault(cell: Cell, host: str) -> str:
    text = cell.checked("qhost", "-F", "gpu_fault", "-h", host)
    return text.rpartition("gpu_fault=")[2].strip()


def test_a_host_without_its_gpus_is_named_with_its_reason(cell: Cell, sick: Node) -> None:
    until(lambda: fault(cell, "node001").startswith("node001/"), 90, 0.5)
    told = problems(cell)
    assert "node001 is out of the rotation" in told
    assert "no GPU found" in told
    assert rows(cell)["node001"] == {"faulty"}
    states = json.loads(command(cell, "status", "--json").stdout)["hosts"]
    assert next(host for host in states if host["name"] == "node001")["gpus"] in (0, None)
    job = cell.submit("hostname\n", "-l", "gpu=1,h=node001")
    other = cell.submit("hostname\n", "-l", "gpu=1")
    until(lambda: other not in listed(cell), 60, 0.2)
    assert listed(cell) == {job: "qw"}, "the host still took the job"
    cell.checked("qdel", job, uid=UID)
    cell.wait_idle()


def test_a_queue_that_an_administrator_disabled_stays_disabled(cell: Cell, sick: Node) -> None:
    cell.checked("qmod", "-d", "all.q@node001")
    until(lambda: fault(cell, "node001").startswith("node001/"), 90, 0.5)
    sick.write("/etc/sge-gpus", f"count = {cell.gpus}\n")
    until(lambda: fault(cell, "node001") == "none", 90, 0.5)
    row = next(line for line in cell.run("qstat", "-f").stdout.splitlines() if "@node001" in line)
    assert row.split()[-1] == "d"
    cell.checked("qmod", "-e", "all.q@node001")
