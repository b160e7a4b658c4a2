from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest


@pytest.fixture
def children() -> Iterator[list[int]]:
    """Processes that the test starts; those still running afterwards are killed."""
    pids: list[int] = []
    yield pids
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
