"""The test bed itself: hosts boot, die and reboot, and nothing is left on this machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.cell import REPOSITORY, UID, USER, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge


def traces() -> dict[str, object]:
    """Return the state of this machine that a test bed could change."""
    mounts = [line for line in Path("/proc/mounts").read_text().splitlines() if "/testbed-" in line]
    return {
        "mounts": mounts,
        "links": sorted(map(str, Path("/sys/class/net").iterdir())),
        "hosts": Path("/etc/hosts").read_text(),
        "passwd": Path("/etc/passwd").read_text(),
        "packages": Path("/var/lib/dpkg/status").stat().st_mtime,
        "beds": sorted(map(str, Path("/tmp").glob("testbed-*/*"))),
    }


def test_a_cell_runs_jobs_of_an_ordinary_user_on_every_host_and_leaves_no_trace() -> None:
    before = traces()
    with Cell(setup=False) as cell:
        assert cell.hosts_up() == 3
        where = cell.home / "where"
        for name in cell.names:
            script = f"#!/bin/bash\necho $(hostname) $(id -un) >> {where}\n"
            cell.submit(script, "-l", f"hostname={name}")
        cell.wait_idle()
        lines = [line.split() for line in where.read_text().splitlines()]
        assert sorted(lines) == [[name, USER] for name in cell.names]
        inside = cell.master.pid
    assert traces() == before
    assert not Path(f"/proc/{inside}").exists()


def test_a_host_can_be_lost_and_booted_again_and_directories_made_read_only() -> None:
    with Cell(2, setup=False) as cell:
        node = cell.fabric.nodes["node001"]
        cell.master.run("ping", "-c1", "-W1", "node001")
        cell.lose(node)
        assert not node.is_up
        cell.boot_again(node)
        until(lambda: node.processes("sge_execd"))
        for how, status in (("ro", 1), ("rw", 0)):
            node.remount(cell.shared, how)
            done = node.run("touch", str(cell.home / "mark"), uid=UID)
            assert done.returncode == status, done.stderr


def test_a_killed_test_run_takes_its_cell_with_it() -> None:
    code = (
        "import os, signal\nfrom tests.testbed.cell import Cell\n"
        "cell = Cell(1, setup=False).__enter__()\nprint(cell.master.pid, cell.shared, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    argv = [sys.executable, "-c", code]
    done = subprocess.run(
        argv, check=False, cwd=REPOSITORY, capture_output=True, text=True, timeout=300
    )
    pid, _, shared = done.stdout.strip().partition(" ")
    until(lambda: not Path(f"/proc/{pid}").exists())
    subprocess.run(["rm", "-rf", shared], check=True)


def test_a_person_gets_a_shell_on_the_master() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.testbed.cell"],
        check=False,
        cwd=REPOSITORY,
        input="sge-jobs run --gpus=1 -- sh -c 'echo has $CUDA_VISIBLE_DEVICES'\nexit\n",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "3 hosts" in done.stdout
    assert re.search(r"has GPU-(master|node\d+)-\d", done.stdout)
