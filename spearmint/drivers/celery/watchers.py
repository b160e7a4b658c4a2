"""The processes that watch trials: that of the next trial starts while the last one runs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from spearmint.trial.supervise import descendants


class Watchers:
    """Runs tasks of ``spearmint.trial.supervise``, one at a time."""

    def __init__(self) -> None:
        self._next: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def run(self, task: Mapping[str, Any], locks: Sequence[int]) -> None:
        """Run a task in a process that holds the other end of the life line, until it has ended.

        Args:
            task: The task.
            locks: File descriptors that the process keeps open.
        """
        read_end, write_end = os.pipe()
        try:
            watcher, link = self._ready()
            with link:
                self._give(link, task, [read_end, *locks])
            with contextlib.suppress(OSError):  # the next trial starts its own
                self._next = _start()
            watcher.wait()
        finally:
            os.close(read_end)
            os.close(write_end)
        end_children(keep=[self._next[0].pid] if self._next else [])

    def _ready(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        found, self._next = self._next, None
        if found is not None and found[0].poll() is not None:
            found[1].close()
            found = None  # it was killed
        return found or _start()

    def _give(self, link: socket.socket, task: Mapping[str, Any], fds: list[int]) -> None:
        # A watcher that was killed since leaves no end: its caller says so.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(link, [b"\n"], fds)
            link.sendall(json.dumps(task).encode())
            link.shutdown(socket.SHUT_WR)


def _start() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a watcher, which imports what it needs and waits for its task."""
    ours, theirs = socket.socketpair()
    with theirs:
        watcher = subprocess.Popen(
            [sys.executable, "-P", "-m", "spearmint.trial.supervise"],
            stdin=theirs.fileno(),
            cwd="/",
            env={**os.environ, **_import_path()},
            start_new_session=True,
        )
    return watcher, ours


def _import_path() -> Mapping[str, str]:
    """Let the supervisor import this package, wherever this process found it."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def end_children(keep: Sequence[int] = ()) -> None:
    """Kill the processes that a killed supervisor left to this process, which adopts them."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        left = [pid for pid in descendants(os.getpid()) if pid not in keep]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)
