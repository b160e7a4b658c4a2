"""Shares of GPUs on a real cell, with a stand-in for NVIDIA's MPS daemon."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator

import pytest

from sge_jobs.node.gpus.inventory import MPS_DIRECTORY
from sge_jobs.node.mps import CONTROL
from tests.on_hosts.conftest import MakeSearch
from tests.testbed.cell import REPOSITORY, UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"
BOB = 2404
GPUS = [f"GPU-{HOST}-0", f"GPU-{HOST}-1"]
PROGRAM = f"/usr/bin/{CONTROL}"


@pytest.fixture
def node(cell: Cell) -> Iterator[Node]:
    """A host with MPS, in a cell with a second user."""
    for host in cell.hosts:
        passwd = host.inside("/etc/passwd").read_text()
        if "bob" not in passwd:
            host.write("/etc/passwd", f"{passwd}bob:x:{BOB}:{BOB}::/tmp:/bin/sh\n")
            groups = host.inside("/etc/group").read_text()
            host.write("/etc/group", f"{groups}bob:x:{BOB}:\n")
    for host in cell.hosts:
        host.write(PROGRAM, (REPOSITORY / "tests/testbed" / CONTROL).read_text(), 0o755)
    until(lambda: shares_left(cell) == 2, 60, 0.2)
    yield cell.fabric.nodes[HOST]
    cell.run("qdel", "-f", "-u", "*")
    cell.wait_idle()
    for host in cell.hosts:
        host.inside(PROGRAM).unlink()


def shares_left(cell: Cell) -> float:
    text = cell.checked("qhost", "-F", "gpu_share", "-h", HOST)
    return round(float(text.rpartition("gpu_share=")[2].split()[0]), 2)


def job(cell: Cell, *options: str, uid: int = UID) -> str:
    """Submit a job that writes its variables and then waits; return its number."""
    out = shlex.quote(str(cell.shared / "shares"))
    script = (
        f"env | grep CUDA_ > {out}/$JOB_ID.part\nmv {out}/$JOB_ID.part {out}/$JOB_ID\nsleep 3000"
    )
    argv = ("qsub", "-terse", "-j", "y", "-o", "/dev/null", "-l", f"h={HOST}", *options)
    return cell.checked(*argv, uid=uid, stdin=f"#!/bin/sh\n{script}\n").strip()


def variables(cell: Cell, number: str) -> dict[str, str]:
    """Return the variables of a job when it runs."""
    path = cell.shared / "shares" / number
    until(path.exists, 60, 0.1)
    pairs = (line.partition("=") for line in path.read_text().splitlines())
    return {name: value for name, _, value in pairs}


def gpu_rows(cell: Cell) -> list[dict[str, object]]:
    text = cell.checked(sys.executable, "-m", "sge_jobs", "gpus", "--json")
    return [row for row in json.loads(text) if row["host"] == HOST]


def daemon_pids(node: Node) -> set[str]:
    return set(node.run("pgrep", "-f", f"{CONTROL} -d").stdout.split())


def daemons(node: Node) -> set[str]:
    """Return GPU and user ID of each daemon."""
    found = set()
    for pid in daemon_pids(node):
        environ = node.run("cat", f"/proc/{pid}/environ").stdout.split("\0")
        pipes = dict(line.partition("=")[::2] for line in environ).get("CUDA_MPS_PIPE_DIRECTORY")
        found.add(str(pipes).removeprefix(MPS_DIRECTORY + "/"))
    return found


@pytest.fixture(autouse=True)
def _place(cell: Cell) -> None:
    (cell.shared / "shares").mkdir(exist_ok=True)
    (cell.shared / "shares").chmod(0o777)


def test_jobs_of_one_user_share_gpus_and_nobody_else_does(cell: Cell, node: Node) -> None:
    halves = [job(cell, "-l", "gpu_share=0.5") for _ in range(5)]
    found = {number: variables(cell, number) for number in halves[:4]}
    by_gpu = [one["CUDA_VISIBLE_DEVICES"] for one in found.values()]
    assert sorted(by_gpu) == [GPUS[0], GPUS[0], GPUS[1], GPUS[1]]
    assert {one["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] for one in found.values()} == {"50"}
    assert {one["CUDA_MPS_PIPE_DIRECTORY"] for one in found.values()} == {
        f"{MPS_DIRECTORY}/{gpu}.{UID}" for gpu in GPUS
    }
    until(lambda: daemons(node) == {f"{gpu}.{UID}" for gpu in GPUS}, 60, 0.2)
    until(lambda: shares_left(cell) == 0, 60, 0.2)
    expected = [(number, "shared", 0.5) for number in sorted(halves[:4])]
    until(
        lambda: sorted((str(r["job"]), r["status"], r["share"]) for r in gpu_rows(cell)) == expected
    )
    of_bob = job(cell, "-l", "gpu_share=0.1", uid=BOB)
    whole = job(cell, "-l", "gpu=1")
    cell.checked("qdel", halves[0])
    variables(cell, halves[4])  # after the one that was deleted
    assert not (cell.shared / "shares" / of_bob).exists()
    assert not (cell.shared / "shares" / whole).exists()
    on = {number: variables(cell, number)["CUDA_VISIBLE_DEVICES"] for number in halves[1:]}
    cell.checked("qdel", *(number for number in halves[1:] if on[number] == GPUS[0]))
    cell.checked("qdel", "-u", "4cells", "-f", whole)
    assert variables(cell, of_bob)["CUDA_VISIBLE_DEVICES"] == GPUS[0]
    until(lambda: daemons(node) == {f"{GPUS[0]}.{BOB}", f"{GPUS[1]}.{UID}"}, 60, 0.2)
    cell.checked("qdel", "-u", "*")
    until(lambda: not daemons(node), 60, 0.2)
    until(lambda: not node.run("ls", MPS_DIRECTORY).stdout.split(), 60, 0.2)


def test_whole_gpus_and_shares_never_meet(cell: Cell, node: Node) -> None:
    share = job(cell, "-l", "gpu_share=0.25")
    assert variables(cell, share)["CUDA_VISIBLE_DEVICES"] == GPUS[0]
    whole = [job(cell, "-l", "gpu=1") for _ in range(2)]
    assert variables(cell, whole[0])["CUDA_VISIBLE_DEVICES"] == GPUS[1]
    assert "CUDA_MPS_PIPE_DIRECTORY" not in variables(cell, whole[0])
    until(lambda: shares_left(cell) == 0.75, 60, 0.2)
    more = job(cell, "-l", "gpu_share=0.8")
    another = job(cell, "-l", "gpu_share=0.75")
    assert variables(cell, another)["CUDA_VISIBLE_DEVICES"] == GPUS[0]
    assert not (cell.shared / "shares" / whole[1]).exists()
    assert not (cell.shared / "shares" / more).exists()
    cell.checked("qdel", share, another)
    ran = {number for number in (whole[1], more) if (cell.shared / "shares" / number).exists()}
    until(
        lambda: (
            ran.update(
                number for number in (whole[1], more) if (cell.shared / "shares" / number).exists()
            )
            or ran
        ),
        60,
        0.2,
    )
    assert len(ran) == 1


def test_a_daemon_that_dies_is_started_again(cell: Cell, node: Node) -> None:
    variables(cell, job(cell, "-l", "gpu_share=0.5"))
    killed = daemon_pids(node)
    assert killed
    node.run("kill", "-9", *killed)
    until(lambda: not killed & daemon_pids(node) and daemons(node) == {f"{GPUS[0]}.{UID}"}, 60, 0.2)


def test_trials_share_gpus(cell: Cell, node: Node, make_search: MakeSearch) -> None:
    search = make_search(trials=12, steps=5)
    controller = search.start("--gpus=0.5")
    until(lambda: len([row for row in gpu_rows(cell) if row["status"] == "shared"]) == 4, 60, 0.2)
    assert "12 trials" in controller.output
    controller.end()
    assert {float(str(row["share"])) for row in gpu_rows(cell)} <= {0.0, 0.5}
