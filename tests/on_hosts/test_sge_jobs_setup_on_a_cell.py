"""``sge-jobs setup`` and ``check`` on a real Grid Engine cell: three hosts with two GPUs each."""

from __future__ import annotations

import sys
import time

import pytest

from tests.on_hosts.cell_commands import command, door, listed, problems
from tests.testbed.cell import UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge
VISIBLE = "CUDA_VISIBLE_DEVICES"


@pytest.fixture(autouse=True)
def idle(cell: Cell) -> None:
    """Delete all jobs before each test."""
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


@pytest.mark.parametrize(
    ("harm", "fix", "fact"),
    [
        ("qmod -d all.q@node001", "qmod -e all.q@node001", "qmod -e all.q@node001"),
        ("qconf -ds master", "qconf -as master", "qconf -as master"),
        (
            "qconf -rattr queue starter_method NONE all.q",
            "python -m sge_jobs setup",
            "queue all.q does not assign GPUs",
        ),
        (
            "qconf -mattr exechost complex_values gpu=3 node002",
            "python -m sge_jobs setup --gpus=node002=2",
            "--gpus node002=2",
        ),
        (
            "qconf -rattr queue load_thresholds load_avg=0.000001 all.q",
            "qconf -rattr queue load_thresholds NONE all.q",
            "qstat -f -explain a -q all.q@node001",
        ),
    ],
)
def test_check_finds_a_problem_until_it_is_fixed(
    cell: Cell, harm: str, fix: str, fact: str
) -> None:
    until(lambda: not problems(cell), 60, 0.5)
    cell.checked("sh", "-c", harm)
    until(lambda: fact in problems(cell), 40, 0.5)
    cell.checked("sh", "-c", fix)
    until(lambda: not problems(cell), 60, 0.5)


def test_a_host_that_cannot_query_the_master_is_named_and_fixed(cell: Cell) -> None:
    until(lambda: not problems(cell), 60, 0.5)
    cell.qconf("-dh", "node001")
    cell.qconf("-ds", "node001")
    assert "qconf -as node001" in problems(cell)
    done = command(cell, "setup", uid=0, node=cell.fabric.nodes["node001"])
    assert done.returncode == 1
    assert "qconf -as node001" in done.stderr
    assert "qconf -as node001" in command(cell, "setup", uid=0).stdout
    done = command(cell, "run", "--gpus=1", "-l", "hostname=node001", "--", "true")
    assert done.returncode == 0, done.stderr
    cell.qconf("-ah", "node001")


def test_another_queue_of_the_same_hosts_is_named_until_it_gives_gpus_or_takes_none(
    cell: Cell,
) -> None:
    until(lambda: not problems(cell), 60, 0.5)
    queue = cell.qconf("-sq", "all.q").replace("all.q", "other.q")
    lines = [line for line in queue.splitlines() if not line.startswith("starter_method")]
    cell.qconf_file("-Aq", "\n".join([*lines, "starter_method NONE", ""]))
    try:
        found = problems(cell)
        assert "queue other.q" in found
        assert "master, node001, node002" in found
        cell.qconf("-mattr", "queue", "complex_values", "gpu=0", "other.q")
        assert not problems(cell)
        cell.qconf("-rattr", "queue", "complex_values", "NONE", "other.q")
        command(cell, "setup", "--queue=other.q", uid=0)
        assert not problems(cell)
        done = command(cell, "run", "--queue=other.q", "--gpus=1", "--", "printenv", VISIBLE)
        assert done.stdout.startswith("GPU-"), done.stderr
    finally:
        cell.qconf("-dq", "other.q")


def test_undo_leaves_a_cell_that_works_without_the_package(cell: Cell) -> None:
    until(lambda: not problems(cell), 60, 0.5)
    before = _everything(cell)
    done = command(cell, "setup", "--undo", "--dry-run", uid=0)
    assert (done.returncode, "starter_method NONE all.q" in done.stdout) == (0, True)
    assert _everything(cell) == before
    done = command(cell, "setup", "--undo", uid=0)
    assert (done.returncode, "starter_method NONE all.q" in done.stdout) == (0, True), done.stderr
    assert "sge_jobs" not in _everything(cell)
    done = command(cell, "run", "--gpus=1", "--", "printenv", VISIBLE)
    assert (done.returncode, done.stdout) == (1, "")
    assert "qconf" not in command(cell, "setup", "--undo", uid=0).stdout
    command(cell, "setup", uid=0)
    assert _everything(cell) == before
    until(lambda: not problems(cell), 60, 0.5)


def test_setup_changes_nothing_twice_and_keeps_what_a_site_set(cell: Cell) -> None:
    assert "qconf" not in command(cell, "setup", uid=0).stdout
    cell.qconf("-mattr", "exechost", "complex_values", "h_vmem=8G", "node001")
    cell.qconf("-rattr", "queue", "load_thresholds", "load_avg=1000", "all.q")
    before = _everything(cell)
    done = command(cell, "setup", "--gpus=4", uid=0)
    assert "host node001: gpu=2 " in done.stdout
    assert "queue all.q: load_thresholds load_avg=1000 " in done.stdout
    assert _everything(cell) == before
    assert (
        "gpu=4,gpu_share=4.001 node001"
        in command(cell, "setup", "-n", "--gpus=node001=4", uid=0).stdout
    )
    assert _everything(cell) == before
    command(cell, "setup", "--gpus=node001=4", uid=0)
    shown = cell.qconf("-se", "node001").split("load_values")[0]
    values = shown.split("complex_values")[1].replace("\\\n", "").split(",")
    assert {value.strip() for value in values} == {"gpu=4", "gpu_share=4.001", "h_vmem=8G"}
    refused = command(cell, "setup", "--gpus=node001=2", uid=UID)
    assert refused.returncode == 1
    assert "qconf -sm" in refused.stderr
    command(cell, "setup", "--gpus=node001=2", uid=0)
    cell.qconf("-rattr", "queue", "load_thresholds", "NONE", "all.q")


def _everything(cell: Cell) -> str:
    texts = [cell.qconf(option) for option in ("-sc", "-ssconf", "-sconf", "-spl")]
    hosts = [cell.qconf("-se", name).split("load_values")[0] for name in cell.names]
    return "".join([*texts, *hosts, cell.qconf("-sq", "all.q")])


@pytest.mark.slow
def test_a_lost_host_is_told_and_its_jobs_can_be_forgotten(cell: Cell) -> None:
    (id,) = door(
        cell,
        "show(q.submit(JobSpec(name='n', argv=('sleep', '600'), directory=Path('/tmp'), "
        "rerunnable=False, resources=Resources(requests=('hostname=node002',)))))",
    )
    until(lambda: listed(cell).get(str(id)) == "r", 30, 0.2)
    node = cell.fabric.nodes["node002"]
    cell.lose(node)
    until(lambda: "qconf -de node002" in problems(cell), 60, 0.5)
    door(cell, f"q.delete([{id!r}])")
    cell.checked(
        sys.executable,
        "-c",
        f"from sge_jobs import Queue; Queue().delete(['{id}', '99'], force=True)",
    )
    cell.wait_idle()
    cell.boot_again(node)
    until(lambda: not problems(cell), 60, 0.5)


@pytest.mark.slow
def test_setup_on_running_hosts_takes_no_job_away() -> None:
    with Cell(2, setup=False) as made:
        # Disable the load threshold: otherwise the queue is in alarm, because this machine is busy.
        made.qconf("-rattr", "queue", "load_thresholds", "NONE", "all.q")
        ids = [made.submit("#!/bin/sh\nsleep 600\n", "-r", "y") for _ in range(2)]
        until(lambda: set(listed(made).values()) == {"r"}, 60, 0.5)
        started = made.run("qstat", "-u", "*").stdout
        done = command(
            made, "setup", uid=0, timeout_s=200
        )  # the sensors report the numbers of GPUs
        assert "complex_values gpu=2,gpu_share=2.001 node001" in done.stdout, done.stderr
        assert "max_unheard 00:00:20" in " ".join(made.qconf("-sconf").split())
        time.sleep(25)  # longer than the new max_unheard
        assert made.run("qstat", "-u", "*").stdout == started
        assert set(listed(made)) == set(ids)
        assert command(made, "setup", uid=0).stdout == "Nothing to change.\n"
