"""With restricted devices, a job can open its own GPUs only, and nobody else can open any."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from tests.on_hosts.cell_commands import command, problems
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"
# Two GPUs as their driver shows them, and stand-ins for their devices in a separate /dev.
STAND_INS = f"""
set -e
mount -t tmpfs tmpfs /proc/driver
for minor in 0 1; do
    mkdir -p /proc/driver/nvidia/gpus/0000:0$minor:00.0
    printf 'Model: \\t X\\nGPU UUID: \\t GPU-{HOST}-%s\\nDevice Minor: \\t %s\\n' $minor $minor \\
        > /proc/driver/nvidia/gpus/0000:0$minor:00.0/information
done
printf 'ModifyDeviceFiles: 0\\nDeviceFileMode: 438\\n' > /proc/driver/nvidia/params
mkdir -p /tmp/dev
mount -t tmpfs -o dev,mode=755 tmpfs /tmp/dev
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/fd /tmp/dev
mkdir -m 1777 /tmp/dev/shm
for minor in 0 1; do mknod /tmp/dev/nvidia$minor c 1 3; chmod 666 /tmp/dev/nvidia$minor; done
mount --move /tmp/dev /dev
"""
TRY = 'for n in 0 1; do (: < /dev/nvidia$n) 2> /dev/null && echo "GPU-{}-$n"; done; true'


def restart(cell: Cell) -> None:
    for node in cell.hosts:
        cell.kill("sge_execd", node)
        cell.start_execd(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)


def stand_in(node: Node) -> None:
    done = node.run("sh", "-c", STAND_INS)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def node(cell: Cell) -> Node:
    """A host with restricted devices; the others have no devices to restrict."""
    found = cell.fabric.nodes[HOST]
    stand_in(found)
    done = command(cell, "setup", "--restrict-devices", uid=0)
    assert done.returncode == 0, done.stderr
    restart(cell)
    return found


def modes(node: Node) -> set[str]:
    return set(node.run("stat", "-c", "%a", "/dev/nvidia0", "/dev/nvidia1").stdout.split())


def opened(cell: Cell, node: Node, uid: int = UID) -> list[str]:
    """Return the GPUs that a user without a job can open."""
    done = node.run("setpriv", f"--reuid={uid}", "--clear-groups", "sh", "-c", TRY.format(HOST))
    return done.stdout.split()


def job(cell: Cell, name: str, gpus: int, then: str = "", *options: str) -> Path:
    """Submit a job that writes the GPUs that it has, and those that it can open."""
    out = cell.home / name
    script = f"#!/bin/bash\nyes=$({TRY.format(HOST)})\n"
    script += f'echo "$CUDA_VISIBLE_DEVICES;"$yes > {out}.new; mv {out}.new {out}\n{then}\n'
    asked = ("-l", f"gpu={gpus}") if gpus else ()
    cell.submit(script, "-l", f"hostname={HOST}", *asked, *options)
    return out


def seen(out: Path) -> tuple[list[str], list[str]]:
    until(out.exists, 90, 0.1)
    own, _, found = out.read_text().strip().partition(";")
    return sorted(filter(None, own.split(","))), sorted(found.split())


def test_a_job_opens_its_own_gpus_only(cell: Cell, node: Node) -> None:
    until(lambda: modes(node) == {"660"}, 60, 0.2)
    assert opened(cell, node) == []
    running = job(cell, "first", 1, "sleep 3000")
    mine, found = seen(running)
    assert mine == found
    assert len(mine) == 1
    other, found = seen(job(cell, "second", 1))
    assert other == found
    assert other != mine
    assert seen(job(cell, "none", 0)) == ([], [])
    assert opened(cell, node) == []
    assert "cannot restrict" in problems(cell), "the hosts without devices"
    cell.run("qdel", "-u", "*")
    cell.wait_idle()


def test_kill_9_of_shepherd_sensor_and_attendant_opens_no_device(cell: Cell, node: Node) -> None:
    mine, _ = seen(job(cell, "third", 1, "sleep 3005", "-r", "n"))
    for part in ("sge_shepherd", "sge_jobs.node.sensor"):
        for pid in node.processes(part):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    cell.wait_idle()
    assert opened(cell, node) == []
    other, found = seen(job(cell, "fourth", 1))
    assert other == found
    assert other != mine, "a leftover process has it"
    cell.kill("sleep 3005", node)
    both, found = seen(job(cell, "both", 2))
    assert both == found
    assert len(both) == 2


def test_a_reboot_closes_the_devices_before_a_job_starts(cell: Cell, node: Node) -> None:
    cell.lose(node)
    node.boot()
    stand_in(node)
    cell.start_execd(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)
    mine, found = seen(job(cell, "reboot", 1))
    assert mine == found
    assert len(mine) == 1


def test_setup_opens_them_again(cell: Cell, node: Node) -> None:
    assert command(cell, "setup", "--undo", uid=0).returncode == 2
    assert command(cell, "setup", "--no-restrict-devices", uid=0).returncode == 0
    restart(cell)
    until(lambda: modes(node) == {"666"}, 60, 0.2)
    assert len(opened(cell, node)) == 2
    assert len(seen(job(cell, "open", 1))[1]) == 2
    assert command(cell, "setup", "--undo", "--dry-run", uid=0).returncode == 0
