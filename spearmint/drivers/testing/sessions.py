"""Start and kill the processes of a session, as a queue does."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from spearmint.drivers.processes import identity

# Writes its process id, so that every controller finds the job, and later its exit status.
_SCRIPT = 'echo "$$" > "$0/pid"; "$@"; status=$?; echo "$status" > "$0/exit"; exit "$status"'


def start_session(folder: Path, job: Mapping[str, Any]) -> None:
    """Start a job in a new session, which writes ``pid`` and ``exit`` into ``folder``."""
    with Path(job["output"]).open("ab") as output:
        subprocess.run(
            ["setsid", "--fork", "sh", "-c", _SCRIPT, str(folder), *job["argv"]],
            env={**os.environ, **job["environment"]},
            cwd=job["directory"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=True,
        )


def kill_session(leader: int | None) -> None:
    """Kill all processes of a session and return when they have ended; None: do nothing."""
    while any(True for _ in _members(leader)):
        signal_session(leader, signal.SIGKILL)
        time.sleep(0.01)


def signal_session(leader: int | None, number: int) -> None:
    """Send a signal to all processes of a session."""
    for pid in _members(leader):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _members(leader: int | None) -> Iterator[int]:
    for pid in psutil.pids() if leader is not None else ():
        with contextlib.suppress(OSError):
            if os.getsid(pid) == leader and identity(pid) is not None:
                yield pid
