"""A lock that allows one submission of a search at a time, across controllers."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spearmint.errors import DriverUnreachable

_TIMEOUT_S = 60.0


@contextmanager
def submit_lock(path: Path) -> Iterator[int]:
    """Hold the lock and yield its file descriptor.

    A command that inherits the descriptor keeps the lock if its controller is killed. The next
    controller therefore waits for the command and sees the job that it submits.

    Raises:
        DriverUnreachable: A submission of an earlier run is still in progress after a minute.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _lock(fd)
        yield fd
    finally:
        os.close(fd)


def _lock(fd: int) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise DriverUnreachable(
                    f"a submission of an earlier run is still in progress after {_TIMEOUT_S:g} s"
                ) from None
            time.sleep(0.05)
