"""The parent of a job's process: ``-m spearmint.trial.shepherd RERUN_COMMAND COMMAND...``.

For queues that neither end every process of a job nor warn every process. RERUN_COMMAND is a line
of shell words that sends the job back to the queue. This module imports only the standard library.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType

from spearmint.trial.environment import RERUN_EXIT_CODE
from spearmint.trial.leftovers import adopt_orphans, children, end_as, end_children

_ENDS = (signal.SIGTERM, signal.SIGINT)  # the child passes them on
_WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)  # for every process of the job
_REQUEUED_S = 60.0  # the queue kills the job before


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, end the processes that it left, and exit as it did."""
    rerun, *command = sys.argv[1:] if argv is None else argv
    code = int(os.environ.get(RERUN_EXIT_CODE, "0"))
    signals = _Signals()
    adopt_orphans()
    with subprocess.Popen(command, close_fds=False) as child:
        signals.pass_to(child)
        status = child.wait()
    signals.pass_to(None)
    end_children()
    if code and status == code:
        asked = subprocess.run(shlex.split(rerun), check=False, stdin=subprocess.DEVNULL)
        time.sleep(0 if asked.returncode else _REQUEUED_S)
    return end_as(status)


class _Signals:
    """Passes signals that only this process gets to the child, even if it starts later."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._child: subprocess.Popen[bytes] | None = None
        for number in (*_ENDS, *_WARNINGS):
            signal.signal(number, self._pass)

    def pass_to(self, child: subprocess.Popen[bytes] | None) -> None:
        """Pass signals to ``child`` from now on, first those that arrived before; None: to none."""
        self._child = child
        early, self._received = self._received, []
        for number in early:
            self._pass(number, None)

    def _pass(self, number: int, frame: FrameType | None) -> None:
        if self._child is None:
            self._received.append(number)
        elif number in _ENDS:
            self._child.send_signal(number)
        else:
            for pid in _family(self._child.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)


def _family(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        found += children(one)
    return found


if __name__ == "__main__":
    sys.exit(main())
