"""Terminate the processes that a trial left, and exit as it did; only the standard library."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path

_TERM_GRACE_S = 5.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def adopt_orphans() -> None:
    """Become the parent of leftover processes of trials, to terminate them."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_children(spare: Collection[int] = ()) -> None:
    """Terminate leftover processes of the trial: SIGTERM, and SIGKILL 5 s later.

    Args:
        spare: Children that continue.
    """
    deadline = time.monotonic() + _TERM_GRACE_S
    asked: set[int] = set()
    while found := children() - set(spare):
        late = time.monotonic() > deadline
        for pid in found - (set() if late else asked):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        asked |= found
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def children(pid: int | None = None) -> set[int]:
    """Return the child processes of ``pid``; None for this process."""
    parent = os.getpid() if pid is None else pid
    with contextlib.suppress(OSError):
        return set(map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split()))
    return set()


def end_as(status: int) -> int:
    """Return ``status``; if a signal killed the trial, exit by it, so that the queue sees it."""
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status
