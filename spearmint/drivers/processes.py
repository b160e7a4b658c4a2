"""Processes of a trial on this machine: who lives, who is left, and their end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import psutil

from spearmint.reporting import TRIAL_DIR

_TERM_GRACE_S = 5.0


def identity(pid: int) -> str | None:
    """Return ``PID@START``, which no later process can have; None when there is none."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{pid}@{process.create_time():.2f}"
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def pid_of(job_id: str) -> int:
    """Return the process id in an identity."""
    return int(job_id.partition("@")[0])


def is_alive(job_id: str) -> bool:
    """Tell whether the process of this identity runs."""
    return identity(pid_of(job_id)) == job_id


def of_trial(folder: Path) -> list[psutil.Process]:
    """Return the running processes that carry ``folder`` in their environment."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and process.environ().get(TRIAL_DIR) == str(folder):
                found.append(process)
    return found


def kill_all_of(folders: Collection[Path]) -> None:
    """End every process of the trials in ``folders``: TERM, a grace of 5 s, then KILL."""
    for folder in folders:
        for process in of_trial(folder):
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + _TERM_GRACE_S
    while time.monotonic() < deadline:
        if not any(of_trial(folder) for folder in folders):
            return
        time.sleep(0.05)
    for folder in folders:
        for process in of_trial(folder):
            with contextlib.suppress(psutil.Error):
                process.kill()
                process.wait(_TERM_GRACE_S)


def wait_for_end(pids: Iterable[int], timeout_s: float) -> None:
    """Return when one of ``pids`` ends, or has ended, after ``timeout_s`` at most."""
    opened: list[int] = []
    try:
        if not hasattr(os, "pidfd_open"):
            time.sleep(min(timeout_s, 0.05))
            return
        poller = select.poll()
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                return
            opened.append(fd)
            poller.register(fd, select.POLLIN)
        poller.poll(timeout_s * 1000)
    finally:
        for fd in opened:
            os.close(fd)
