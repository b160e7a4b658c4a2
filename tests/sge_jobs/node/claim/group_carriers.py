"""Processes with the additional group of a job, as Grid Engine starts them."""

from __future__ import annotations

import os
import subprocess
import sys

GROUP = 10_000_000 + 2 * os.getpid()  # differs from other test runs


def carrier(children: list[int], group: int = GROUP) -> int:
    """Start a process with the group of a job, which inherits no descriptor."""
    code = f"import os, time; os.setgroups([{group}]); print(1, flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.stdout.close()
    process.returncode = 0  # reaped by the fixture
    children.append(process.pid)
    return process.pid
