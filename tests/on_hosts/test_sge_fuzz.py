"""Thousands of random files of an ordinary user, wherever users of a GPU host can write."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sge_jobs.gpu_state import GpuStatus
from tests.on_hosts.cell_commands import problems
from tests.on_hosts.test_sge_attacks import BOTH, HOST, STRANGER, attack, given, job, node
from tests.on_hosts.test_sge_jobs_cell import uses
from tests.testbed.cell import UID, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = [pytest.mark.sge, pytest.mark.slow]
__all__ = ["node"]

# Arguments: seed, number of steps. Each step changes one name in a place that users can write, or
# tries to in a place of root.
FUZZ = """
import fcntl, os, random, sys
noise = random.Random(int(sys.argv[1]))
places = ["/run/lock", "/run/lock/sge_jobs", "/dev/shm", "/dev/shm/sge_jobs", "/run/sge_jobs",
          "/run/sge_jobs/locks", "/tmp", "/var/tmp", "/var/spool/gridengine/execd/node001",
          "/var/spool/gridengine/execd/node001/active_jobs"]
names = ["sge_jobs", "locks", "claims", "gpus", "GPU-node001-0", "GPU-node001-1", "pid", "config",
         "environment", "active_jobs", "1.1", "sge_jobs.1", "x"]
targets = ["/etc/passwd", "/run/sge_jobs", "/proc/self/mem", "/nonexistent", "/", "..", "."]
held = []
def path():
    where = noise.choice(places)
    if noise.random() < 0.3:
        try:
            where = os.path.join(where, noise.choice(os.listdir(where)))
        except (OSError, IndexError):
            pass
    return os.path.join(where, noise.choice(names))
def write():
    mode = noise.choice((0, 0o600, 0o644, 0o666, 0o777))
    file = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW, mode)
    os.write(file, noise.choice((b"", noise.randbytes(600), b"sge_jobs lock 2\\n", b"1\\n" * 200)))
    if noise.random() < 0.2:
        os.ftruncate(file, noise.choice((0, 511, 512, 1 << 20)))
    os.close(file)
def lock():
    held.append(os.open(path(), os.O_RDONLY | os.O_NONBLOCK))
    fcntl.flock(held[-1], noise.choice((fcntl.LOCK_EX, fcntl.LOCK_SH)) | fcntl.LOCK_NB)
    if len(held) > 100:
        os.close(held.pop(0))
steps = [write, write, lock,
         lambda: os.mkdir(path(), noise.choice((0, 0o700, 0o777))),
         lambda: os.mkfifo(path()),
         lambda: os.link(path(), path()),
         lambda: os.symlink(noise.choice([*targets, path()]), path()),
         lambda: os.rename(path(), path()),
         lambda: os.chmod(path(), noise.choice((0, 0o600, 0o4777, 0o1777))),
         lambda: os.unlink(path()),
         lambda: os.rmdir(path())]
done = 0
for _ in range(int(sys.argv[2])):
    try:
        noise.choice(steps)()
        done += 1
    except OSError:
        pass
print(done)
"""


def fuzz(cell: Cell, uid: int, seed: int, steps: int) -> int:
    """Make random changes as user ``uid``; return how many of them the kernel permitted."""
    argv = (sys.executable, "-c", FUZZ, str(seed), str(steps))
    out = subprocess.run(
        cell.enter(argv, uid=uid, node=cell.fabric.nodes[HOST]),
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr
    return int(out.stdout)


def test_random_files_of_a_user_change_nothing(cell: Cell, node: Node) -> None:
    (mine,) = given(job(cell, 1, seconds=3000))
    allowed = sum(fuzz(cell, uid, seed, 1250) for seed in range(4) for uid in (STRANGER, UID))
    assert allowed > 500
    assert given(job(cell, 1)) == BOTH - {mine}  # none lost
    until(lambda: {use.uuid: use.status for use in uses(cell)}.get(mine) is GpuStatus.HELD, 60, 0.2)
    waiting = job(cell, 2)  # none given twice
    attack(cell, "sleep 8")
    assert waiting.read_text() == ""
    assert problems(cell) == ""
    cell.run("qdel", "-u", "*")
    cell.wait_idle()
    assert given(job(cell, 2)) == BOTH
