"""Processes that stand in for Grid Engine's shepherds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from sge_jobs.node.claim.processes import Process, read_process
from sge_jobs.node.claim.record import WHOLE, Record


def fork(children: list[int], work: Callable[[], object]) -> int:
    """Run ``work`` in a child, which then sleeps until it is killed; return after ``work``."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            os.write(writing, b"x")
            code = 0
            time.sleep(600)
        finally:
            os._exit(code)
    os.close(writing)
    children.append(pid)
    done = os.read(reading, 1)
    os.close(reading)
    assert done == b"x"
    return pid


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def become_shepherd(directory: Path | str = "/") -> None:
    """Give this process the name and the working directory of a shepherd."""
    Path("/proc/self/comm").write_text("sge_shepherd")
    os.chdir(directory)


def shepherd(children: list[int], directory: Path | str = "/") -> Process:
    """Start a process that looks like the shepherd of the job in spool ``directory``."""
    process = read_process(fork(children, lambda: become_shepherd(directory)))
    assert process is not None
    assert process.is_shepherd
    return process


def record(
    above: Process,
    job: int = 1,
    *,
    group: int = 0,
    share: int = WHOLE,
    boot: str = "boot",
    task: str = "",
    parallel: str = "",
) -> Record:
    """Return the record of a job below shepherd ``above``."""
    return Record(
        job=str(job), task=task, parallel=parallel, user="alice", boot=boot, since=1, group=group,
        share=share, shepherd=above.pid, shepherd_started=above.started,
    )  # fmt: skip
