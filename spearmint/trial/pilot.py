"""Run a trial and, while trials wait in the queue, the next ones: ``-m spearmint.trial.pilot``.

Grid Engine takes about a second to start a job where another has ended; a job that goes on with
the next trial itself leaves its GPU idle for a third of that. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from spearmint.trial.pending import Tickets
from spearmint.trial.reporting import AHEAD, ENDED_FILE, PATIENCE
from spearmint.trial.retry import patiently

_HAND_OVER_S = 600.0  # a job this old gives its GPU back: others in the queue wait too
_WAIT_S = 1.0  # how long a GPU waits for a trial here; about what Grid Engine takes
_STEP_S = 0.03
_TERM_GRACE_S = 5.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trial of the token and the folder in ``argv``, then those that wait."""
    token, folder = sys.argv[1:] if argv is None else argv
    began, environment = time.monotonic(), dict(os.environ)
    tickets, job = Tickets(Path(environment[AHEAD])), environment["JOB_ID"]
    _adopt_orphans()
    patience_s = float(environment.get(PATIENCE, "0"))
    if not patiently(lambda: tickets.claim(token, job), patience_s):
        sys.stderr.write("another job runs this trial already\n")
        return 0
    signals = _Signals()
    status = _run(folder, environment, signals)
    while status == 0 and time.monotonic() - began < _HAND_OVER_S:
        _end_children()
        ticket = _wait_for_ticket(tickets, job, signals)
        if ticket is None:
            return _end_as(-signals.asked)
        patiently(partial(_log_to, ticket["output"]), patience_s)
        status = _run(ticket["folder"], {**environment, ENDED_FILE: ticket["ended"]}, signals)
    return _end_as(status)


class _Signals:
    """Passes signals that only this process gets on to the runner, also to one that begins later.

    Attributes:
        asked: Number of the last signal that asked to end; 0 for none.
    """

    def __init__(self) -> None:
        self.asked = 0
        self._child: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._take)
        for number in (signal.SIGUSR1, signal.SIGUSR2):  # the queue's warnings go to all
            signal.signal(number, lambda number, frame: None)

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.asked = number
        if self._child is not None:
            self._child.send_signal(number)

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Return the status of a runner, which gets what came before it, too."""
        self._child = child
        if self.asked:
            child.send_signal(self.asked)
        status = child.wait()
        self._child = None
        return status


def _wait_for_ticket(tickets: Tickets, job: str, signals: _Signals) -> dict[str, Any] | None:
    deadline = time.monotonic() + _WAIT_S
    while not signals.asked:
        with contextlib.suppress(OSError):
            if (ticket := tickets.take_next(job)) is not None:
                return ticket
        if time.monotonic() >= deadline:
            break
        time.sleep(_STEP_S)
    return None


def _run(folder: str, environment: Mapping[str, str], signals: _Signals) -> int:
    """Return the status of a runner."""
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", folder]
    # It inherits the lock of the GPU: should we be killed, the GPU stays its own.
    with subprocess.Popen(argv, env=environment, close_fds=False) as child:
        return signals.wait(child)


def _adopt_orphans() -> None:
    """Become the parent of what trials leave behind, so that it can be ended."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _end_children() -> None:
    """End what the trial left: TERM, and KILL 5 s later."""
    deadline = time.monotonic() + _TERM_GRACE_S
    asked: set[int] = set()
    while children := _children():
        late = time.monotonic() > deadline
        for pid in children - (set() if late else asked):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
        asked |= children
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def _children() -> set[int]:
    pid = os.getpid()
    with contextlib.suppress(OSError):
        return set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    return set()


def _log_to(path: str) -> None:
    """Send what is printed from now on to the end of ``path``."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(fd, stream)
    os.close(fd)


def _end_as(status: int) -> int:
    """Return ``status``; end by the signal that ended the trial, so that the queue sees it."""
    if status < 0:
        if -status != signal.SIGKILL:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main())
