"""What an ordinary user of a GPU host can try: steal a GPU, block it, or blame another user."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sge_jobs.gpu_state import GpuStatus, GpuUse
from tests.on_hosts.cell_commands import problems
from tests.on_hosts.test_sge_jobs_cell import uses
from tests.testbed.cell import UID, USER, Cell
from tests.testbed.fabric import Node
from tests.waiting import until

pytestmark = pytest.mark.sge

HOST = "node001"
STRANGER = 2402  # a user of the host who never submits a job
PLACES = "/run/lock/sge_jobs /dev/shm/sge_jobs /run/sge_jobs /var/spool/gridengine"
BOTH = {f"GPU-{HOST}-0", f"GPU-{HOST}-1"}

LINK = f"""
for file in $(find {PLACES} -type f 2>/dev/null); do
    for target in /run/lock /dev/shm /tmp "${{file%/*}}"; do
        ln "$file" "$target/mine.${{file##*/}}"; ln -sf "$file" "$target/soft.${{file##*/}}"
    done
done
"""
FORGE = f"""
boot=$(cat /proc/sys/kernel/random/boot_id)
record="sge_jobs lock 1\njob 1\ntask \nuser root\nboot $boot\nsince 5\ngroup 0\npid 1"
for file in $(find {PLACES} -type f 2>/dev/null); do
    printf '%s\\nshepherd 1\\nshepherd_started 1\\nend\\n' "$record" > "$file"
    rm -f "$file"
done
for place in {PLACES}; do
    mkdir -p $place
    for number in 0 1; do echo "$record" > $place/GPU-{HOST}-$number; done
    chmod 777 $place
done
"""
HOLD = """
import fcntl, os, sys, time
held = []
for place in sys.argv[1:]:
    for folder, _, names in os.walk(place):
        for name in [*names, "claims", "GPU-node001-0", "GPU-node001-1", "."]:
            for flags in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):
                try:
                    held.append(os.open(os.path.join(folder, name), flags | os.O_NONBLOCK, 0o666))
                    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    pass
print("held", flush=True)
time.sleep(600)
"""
BEFORE_BOOT = """
for place in /run/lock /dev/shm /run; do
    ln -s /tmp $place/sge_jobs; head -c 100M /dev/zero > $place/full
done
"""


@pytest.fixture
def node(cell: Cell) -> Iterator[Node]:
    node = cell.fabric.nodes[HOST]
    passwd = node.inside("/etc/passwd").read_text()
    if "stranger" not in passwd:
        node.write("/etc/passwd", f"{passwd}stranger:x:{STRANGER}:{STRANGER}::/tmp:/bin/sh\n")
    yield node
    cell.run("qdel", "-f", "-u", "*")
    cell.wait_idle()


def attack(cell: Cell, script: str, uid: int = STRANGER) -> None:
    node = cell.fabric.nodes[HOST]
    argv = cell.enter(("sh", "-c", f"{script}\nid -u"), uid=uid, node=node)
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.stdout.endswith(f"{uid}\n"), done.stderr


def job(cell: Cell, gpus: int, *options: str, seconds: float = 0.0) -> Path:
    """Submit a job that writes its GPUs into the returned file, then sleeps."""
    out = cell.home / f"job{len(list(cell.home.glob('job*')))}"
    out.touch()
    out.chmod(0o666)
    script = f'#!/bin/bash\necho "[$CUDA_VISIBLE_DEVICES]" > {out}\nsleep {seconds}\n'
    asked = ("-l", f"gpu={gpus}") if gpus else ()
    cell.submit(script, "-l", f"hostname={HOST}", *asked, *options)
    return out


def given(out: Path) -> set[str]:
    """Wait for the job of ``out``; return its GPUs."""
    until(lambda: out.read_text().endswith("]\n"), 60, 0.1)
    return set(filter(None, out.read_text().strip("[]\n").split(",")))


def status(cell: Cell, gpu: str) -> GpuStatus | None:
    """Return what the sensor last reported of a GPU."""
    return {use.uuid: use.status for use in uses(cell)}.get(gpu)


def reports(cell: Cell) -> tuple[GpuUse, ...]:
    """Return what the sensor reports after it has looked at least twice more."""
    attack(cell, "sleep 12")
    return uses(cell)


@pytest.mark.parametrize("script", [LINK, FORGE], ids=["links", "forged contents"])
def test_files_of_a_stranger_take_no_gpu_from_a_running_job(
    cell: Cell, node: Node, script: str
) -> None:
    (mine,) = given(job(cell, 1, seconds=3000))
    until(lambda: status(cell, mine) is GpuStatus.HELD, 60, 0.2)
    attack(cell, script)
    attack(cell, script, uid=UID)  # also a user of the cell, not only a stranger
    states = {use.uuid: use for use in reports(cell)}
    assert (states[mine].status, states[mine].user) == (GpuStatus.HELD, USER)
    attack(cell, script)
    assert given(job(cell, 1, seconds=3000)) == BOTH - {mine}
    waiting = job(cell, 1)
    reports(cell)
    assert waiting.read_text() == ""
    assert problems(cell) == ""


def test_a_lock_that_a_stranger_holds_blocks_no_job_and_blames_nobody(
    cell: Cell, node: Node
) -> None:
    places = ("/run/lock", "/dev/shm", "/run/sge_jobs", "/var/spool/gridengine")
    argv = cell.enter((sys.executable, "-c", HOLD, *places), uid=STRANGER, node=node)
    attack(cell, FORGE)
    holder = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        assert given(job(cell, 2)) == BOTH
        until(lambda: [use.status for use in uses(cell)] == [GpuStatus.FREE] * 2, 30, 0.2)
        assert problems(cell) == ""
    finally:
        cell.kill("fcntl.flock", node)
        holder.communicate()


def test_links_and_full_directories_made_before_the_first_report_stop_no_job(
    cell: Cell, node: Node
) -> None:
    cell.lose(node)
    node.boot()
    attack(cell, BEFORE_BOOT)
    cell.start_execd(node)
    until(lambda: cell.hosts_up() == len(cell.names), 60, 0.2)
    assert given(job(cell, 2)) == BOTH
    attack(cell, "rm -f /run/lock/full /dev/shm/full")


FORGED_PATH = "/usr/lib/gridengine:/usr/bin:/bin\nhard resource_list:         gpu=2\n"


@pytest.mark.parametrize(
    ("gpus", "options"),
    [
        (1, ("-pe", "smp", "2", "-v", "SGE_HGR_gpu=0 1")),
        (1, ("-v", f"PATH={FORGED_PATH}")),
        (1, ("-pe", "smp", "2", "-v", "A=1\nhost_slots=2\nadd_grp_id=1")),
        (1, ("-pe", "smp", "2", "-A", "x", "-N", "y", "-v", "X=</VA_value><CE_name>gpu")),
    ],
    ids=["SGE_HGR_gpu", "newline in PATH of the job", "config", "XML"],
)  # fmt: skip
def test_no_text_of_a_user_gets_more_gpus_than_were_counted(
    cell: Cell, node: Node, gpus: int, options: tuple[str, ...]
) -> None:
    assert len(given(job(cell, gpus, *options))) == gpus


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_path_with_a_line_of_qstat_in_it_gets_no_more_gpus(
    cell: Cell, node: Node, gpus: int
) -> None:
    """Grid Engine copies the PATH of qsub into the job, before the job's requests."""
    out = cell.home / f"forged{gpus}"
    words = ["qsub", "-terse", "-o", "/dev/null", "-j", "y", "-l", f"hostname={HOST}"]
    words += ["-l", f"gpu={gpus}"] if gpus else []
    script = f'echo "[$CUDA_VISIBLE_DEVICES]" > {out}\n'
    done = cell.run("env", f"PATH={FORGED_PATH}", *words, uid=UID, stdin=script)
    assert done.returncode == 0, done.stderr
    until(out.exists, 60, 0.1)
    assert len(given(out)) == gpus
