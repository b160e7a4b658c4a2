"""Reading /proc with real processes: who has the group of a job, and whose process it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sge_jobs.node.claim.lock_state import running_processes
from sge_jobs.node.claim.processes import Process, carriers, read_process
from sge_jobs.node.claim.record import Record
from tests.sge_jobs.node.claim.group_carriers import GROUP, carrier
from tests.waiting import until

needs_root = pytest.mark.root  # only root can give a process a group


def made(
    pid: int, parent: int, started: int, name: str = "x", groups: tuple[int, ...] = (5,)
) -> Process:
    return Process(
        pid=pid, name=name, parent=parent, groups=frozenset(groups), started=started,
        uid=os.getuid(),
    )  # fmt: skip


def test_a_group_that_grid_engine_uses_again_makes_no_survivors() -> None:
    record = Record(job="7", user="u", boot="b", group=5, shepherd=10, shepherd_started=100)
    old = made(11, 1, 110)
    shepherd = made(20, 1, 200, "sge_shepherd", ())
    child, orphan = made(21, 20, 210), made(22, 1, 220)
    assert running_processes(record, {11: old}) == [old]
    everything = {process.pid: process for process in (old, shepherd, child, orphan)}
    assert running_processes(record, everything) == [old]
    own = {10: made(10, 1, 100, "sge_shepherd", ()), 12: made(12, 10, 120)}
    assert [process.pid for process in running_processes(record, own)] == [12]


@needs_root
def test_proc_is_read_without_zombies_and_kernel_threads(children: list[int]) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    until(lambda: read_process(pid) is None)
    left = carrier(children)
    found = carriers([GROUP, GROUP + 1])
    assert set(found) >= {left, os.getpid(), os.getppid()}  # with those above it
    assert found[left].groups == frozenset([GROUP])
    assert [one for one in found.values() if GROUP in one.groups] == [found[left]]
    assert carriers([GROUP + 1]) == {}
    assert carriers([]) == {}
    os.waitpid(pid, 0)


@needs_root
def test_a_process_whose_first_thread_has_ended_still_lives(children: list[int]) -> None:
    code = (
        f"import ctypes, os, threading, time; os.setgroups([{GROUP}])\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print(1, flush=True); ctypes.CDLL(None).pthread_exit(None)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.stdout.close()
    process.returncode = 0
    children.append(process.pid)
    stat = Path(f"/proc/{process.pid}/stat")
    until(lambda: ") Z " in stat.read_text())
    assert process.pid in carriers([GROUP])
