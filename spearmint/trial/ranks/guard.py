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
from typing import TYPE_CHECKING

from spearmint.layout import TrialFolder
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.ranks.place import Place
from spearmint.trial.ranks.processes import ENDS, end_descendants
from spearmint.trial.ranks.records import Records

if TYPE_CHECKING:
    from spearmint.trial.ranks.hosts.others import Others

_STEP_S = 0.1
_TELL_S = 0.5  # how long the other ranks have to tell how they failed
_GRACE_S = 1.5  # from SIGTERM to SIGKILL
_EXIT_S = 30.0  # how long processes may need to exit after all have returned from main


def main(path: str, n: str) -> int:
    """Run torchrun with N processes until it ends, a rank fails, or the runner dies."""
    adopt_orphans()
    for number in (*ENDS, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, frame: None)  # the pipe says when to end
    folder = TrialFolder(Path(path))
    place = Place.here(folder, int(n))
    records = Records(folder, place)
    try:
        others = _start_others(folder, place, records) if place.leads else None
    except OSError as error:
        records.write_launch_failure(str(error))
        return 1
    module = "spearmint.trial.ranks.torchrun"
    argv = [sys.executable, "-P", "-m", module, path, n, str(os.getpid())]
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
    grace_s = _watch(child, records, int(n), others)
    lost = records.lost(int(n)) if child.poll() is None else []  # else they died with torchrun
    if others is not None:
        others.stop()
    with contextlib.suppress(OSError):
        records.write_stop(lost, now := time.monotonic(), now + grace_s)
    # torchrun ends with its ranks, whose keepers die with it.
    end_descendants(grace_s, child.pid, others.pids if others is not None else ())
    if others is not None:
        records.write_others([ends.as_json() for ends in others.collect()])
    return 0


def _start_others(folder: TrialFolder, place: Place, records: Records) -> Others:
    from spearmint.trial.ranks.hosts.others import start_others  # most trials have one host

    return start_others(folder, place, records)


def _watch(
    child: subprocess.Popen[bytes], records: Records, n: int, others: Others | None
) -> float:
    """Return when the processes must end, with the seconds that they have for it."""
    poller, deadline = select.poll(), None
    poller.register(0, select.POLLIN | select.POLLHUP)
    while child.poll() is None or _wait_for(others, records, n):
        if poller.poll(_STEP_S * 1000):
            return _GRACE_S
        if others is not None:
            others.beat()
            _release(others, records, n)
        if deadline is None and (patience := _patience(records, n, others)) is not None:
            deadline = time.monotonic() + patience
        if deadline is not None and time.monotonic() > deadline:
            return _GRACE_S
    return 0.0


def _wait_for(others: Others | None, records: Records, n: int) -> bool:
    """Return whether the ranks here have returned, and those of other hosts still run."""
    return others is not None and others.are_running() and len(records.ends(n)) == n


def _release(others: Others, records: Records, n: int) -> None:
    """Let torchrun and its store end once the ranks of all hosts have returned."""
    with contextlib.suppress(OSError):
        if not others.are_running() and len(records.ends(n)) == n:
            records.release()


def _patience(records: Records, n: int, others: Others | None = None) -> float | None:
    """Return how long the processes may still run; None if no rank failed and some run."""
    with contextlib.suppress(OSError):
        lost, ends = records.lost(n), records.ends(n)
        if lost or any(end.has_failed for end in ends):
            return _TELL_S
        if others is not None and others.has_failed():
            return _TELL_S
        if len(ends) == n and not (others is not None and others.are_running()):
            return _EXIT_S
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
