"""End a process with its parent, and end all that a process started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

from spearmint.trial.supervise import descendants

ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_STEP_S = 0.01


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when ``parent``, which started it, dies."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def end_descendants(grace_s: float, only_killed: int = 0, spare: Collection[int] = ()) -> None:
    """End all that this process started, SIGTERM first and SIGKILL ``grace_s`` seconds later.

    This process must have called ``adopt_orphans`` before it started them. The process
    ``only_killed`` gets no SIGTERM. Those in ``spare`` continue, with what they start.
    """
    deadline, asked = time.monotonic() + grace_s, {only_killed}
    while found := set(descendants(os.getpid())) - _with_descendants(spare):
        late = time.monotonic() >= deadline
        for pid in found - (set() if late else asked):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        asked |= found
        reap()
        time.sleep(_STEP_S)


def _with_descendants(pids: Collection[int]) -> set[int]:
    return {*pids, *(below for pid in pids for below in descendants(pid))}


def is_running(pid: int) -> bool:
    """Return whether a process runs and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


def reap() -> None:
    """Remove children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
