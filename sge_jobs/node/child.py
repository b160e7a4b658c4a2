"""Call a function in a child process, which a faulty driver can crash or block."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from sge_jobs.node.queries import read_all

QUERY_S = 30.0
_left: list[int] = []


def in_child(produce: Callable[[], str], timeout_s: float = QUERY_S) -> str | None:
    """Return the result of ``produce()`` in a child process; None if it fails or hangs.

    A faulty driver makes its caller hang or crash, which must not happen to the sensor.
    """
    _reap()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                pipe.write(produce())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    try:
        data = read_all(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
    if data is None:
        os.kill(pid, signal.SIGKILL)
        _left.append(pid)  # do not wait: a process inside the driver may never end
        return None
    _, status = os.waitpid(pid, 0)
    return data.decode("utf-8", "replace") if status == 0 else None


def in_background(act: Callable[[], None]) -> None:
    """Call ``act()`` in a child process, and do not wait for it.

    The child has no open files of this process, which a user could keep open by stopping it.
    """
    _reap()
    pid = os.fork()
    if pid:
        _left.append(pid)
        return
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(null, descriptor)
        os.closerange(3, 1024)
        act()
    finally:
        os._exit(0)


def _reap() -> None:
    """Reap children that nobody waits for, so that zombies do not accumulate."""
    for pid in list(_left):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            _left.remove(pid)
