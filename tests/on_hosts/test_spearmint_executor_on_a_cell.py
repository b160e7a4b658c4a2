"""Functions as jobs of a real Grid Engine, for an ordinary user."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.testbed.cell import UID, Cell
from tests.waiting import until

pytestmark = pytest.mark.sge

SCRIPT = """
import json, os, sys, time
from pathlib import Path
import spearmint

ROOT = Path(sys.argv[1])

def work(n):
    with (ROOT / "starts").open("a") as file:
        file.write(f"{n}\\n")
    began = time.time()
    while not (ROOT / "go").exists() and n < 3:
        time.sleep(0.05)
    return [n, os.uname().nodename, os.environ["CUDA_VISIBLE_DEVICES"], began, time.time()]

def fails():
    raise LookupError("no such row")

if __name__ == "__main__":
    with spearmint.executor("SGE", directory=ROOT / "tasks", gpus=1, polling_s=1) as executor:
        if not executor.tasks:
            for n in range(8):
                executor.submit(work, n)
            executor.submit(fails)
        tasks = list(executor.tasks.values())
        print(len(tasks), "tasks", flush=True)
        error = tasks.pop().exception()
        print(json.dumps([str(error), *(task.result() for task in tasks)]))
"""


def test_tasks_outlive_their_executor_and_have_a_gpu_each(cell: Cell) -> None:
    root = cell.home / "executor"
    root.mkdir()
    os.chown(root, UID, UID)
    script = root / "script.py"
    script.write_text(SCRIPT)
    argv = cell.enter([sys.executable, str(script), str(root)], uid=UID)
    first = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    starts = root / "starts"
    until(lambda: starts.exists() and len(starts.read_text().split()) >= 3, 60, 0.1)
    os.kill(cell.master.process(f"{sys.executable} {script}"), signal.SIGKILL)
    assert first.wait() != 0
    (root / "go").touch()
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    text, *rows = json.loads(done.stdout.splitlines()[-1])
    assert text == "no such row"
    assert [row[0] for row in rows] == list(range(8))
    assert sorted(starts.read_text().split()) == [str(n) for n in range(8)]
    _assert_apart(rows)
    cell.wait_idle()
    assert _mode(root / "tasks/jobs/00000001/value.pickle") == 0o600


def _assert_apart(rows: list[tuple[int, str, str, float, float]]) -> None:
    """Check that no GPU had two tasks at a time."""
    for n, host, gpu, began, ended in rows:
        for other, where, which, start, end in rows:
            if n != other and (host, gpu) == (where, which):
                assert end <= began or ended <= start


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777
