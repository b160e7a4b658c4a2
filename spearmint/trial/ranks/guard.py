"""Guard the processes of a trial: ``python -P -m spearmint.trial.ranks.guard FOLDER N``.

Standard input is a pipe from the runner. If the runner dies by any cause, the kernel closes the
pipe. Then, and when a rank has failed, the guard ends torchrun and all that it started, also in
other sessions and process groups. It is in a session that signals to the runner's do not reach.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from spearmint.layout import TrialFolder
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.ranks.processes import ENDS, end_descendants
from spearmint.trial.ranks.records import Records

_STEP_S = 0.1
_TELL_S = 0.5  # how long the other ranks have to tell how they failed
_GRACE_S = 1.5  # from SIGTERM to SIGKILL
_EXIT_S = 30.0  # how long processes may need to exit after all have returned from main


def main(path: str, n: str) -> int:
    """Run torchrun with N processes until it ends, a rank fails, or the runner dies."""
    adopt_orphans()
    for number in (*ENDS, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: None)  # the pipe says when to end
    module = "spearmint.trial.ranks.torchrun"
    argv = [sys.executable, "-P", "-m", module, path, n, str(os.getpid())]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    records = Records(TrialFolder(Path(path)))
    grace_s = _watch(child, records, int(n))
    lost = [rank for rank in range(int(n)) if records.is_lost(rank)]
    lost = lost if child.poll() is None else []  # they died with torchrun
    with contextlib.suppress(OSError):
        records.write_stop(lost, now := time.monotonic(), now + grace_s)
    end_descendants(grace_s, child.pid)  # it ends with its ranks, whose keepers die with it
    return 0


def _watch(child: subprocess.Popen[bytes], records: Records, n: int) -> float:
    """Return when the processes must end, with the seconds that they have for it."""
    poller, deadline = select.poll(), None
    poller.register(0, select.POLLIN | select.POLLHUP)
    while child.poll() is None:
        if poller.poll(_STEP_S * 1000):
            return _GRACE_S
        if deadline is None and (patience := _patience(records, n)) is not None:
            deadline = time.monotonic() + patience
        if deadline is not None and time.monotonic() > deadline:
            return _GRACE_S
    return 0.0


def _patience(records: Records, n: int) -> float | None:
    """Return how long the processes may still run; None if no rank failed and some run."""
    with contextlib.suppress(OSError):
        lost, ends = any(map(records.is_lost, range(n))), records.ends(n)
        if lost or any(end.has_failed for end in ends):
            return _TELL_S
        if len(ends) == n:
            return _EXIT_S
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
