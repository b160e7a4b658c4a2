"""A pilot job runs a trial, then pending trials: ``-m spearmint.trial.pilot TOKEN FOLDER``.

After a job ends, a queue needs about a second to start the next one (Grid Engine, measured). A job
that runs the next trial itself leaves its GPU idle for a third of that. This module imports only
the standard library.
"""

from __future__ import annotations

import contextlib
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

from spearmint.trial.environment import DONE_FILE, JOB_ID_VARIABLE, PENDING_DIR, RETRY_S
from spearmint.trial.leftovers import adopt_orphans, end_as, end_children
from spearmint.trial.pending import PendingTrials
from spearmint.trial.retry import retry_os_error

_MAX_AGE_S = 600.0  # an older job exits and frees its GPU: other users' jobs wait too
_WAIT_S = 1.0  # how long to wait for a trial; a queue needs about as long to start a job
_STEP_S = 0.03


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trial with the token and the folder in ``argv``, then pending trials."""
    token, folder = sys.argv[1:] if argv is None else argv
    began, environment = time.monotonic(), dict(os.environ)
    pending, job = PendingTrials(Path(environment[PENDING_DIR])), _job_id(environment)
    adopt_orphans()
    retry_s = float(environment.get(RETRY_S, "0"))
    if not retry_os_error(lambda: pending.claim(token, job), retry_s):
        sys.stderr.write("another job is running this trial\n")
        return 0
    signals = _Signals()
    status = _run(folder, environment, signals)
    while status == 0 and time.monotonic() - began < _MAX_AGE_S:
        end_children()
        trial = _wait_for_trial(pending, job, signals)
        if trial is None:
            return end_as(-signals.received)
        retry_os_error(partial(_log_to, trial["output"]), retry_s)
        status = _run(trial["folder"], {**environment, DONE_FILE: trial["ended"]}, signals)
    return end_as(status)


def _job_id(environment: Mapping[str, str]) -> str:
    """Return the id that the queue gave this job."""
    return environment[environment[JOB_ID_VARIABLE]]


class _Signals:
    """Forwards signals that only this process gets to the runner, even if it starts later.

    Attributes:
        received: Number of the last SIGTERM or SIGINT; 0 if none arrived.
    """

    def __init__(self) -> None:
        self.received = 0
        self._child: subprocess.Popen[bytes] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)
        # The queue sends its warnings to all processes of the job.
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda number, frame: None)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if self._child is not None:
            self._child.send_signal(number)

    def wait(self, child: subprocess.Popen[bytes]) -> int:
        """Return the exit status of a runner; forward signals that arrived before its start too."""
        self._child = child
        if self.received:
            child.send_signal(self.received)
        status = child.wait()
        self._child = None
        return status


def _wait_for_trial(pending: PendingTrials, job: str, signals: _Signals) -> dict[str, Any] | None:
    deadline = time.monotonic() + _WAIT_S
    while not signals.received:
        with contextlib.suppress(OSError):
            if (trial := pending.take_next(job)) is not None:
                return trial
        if time.monotonic() >= deadline:
            break
        time.sleep(_STEP_S)
    return None


def _run(folder: str, environment: Mapping[str, str], signals: _Signals) -> int:
    """Return the exit status of a runner."""
    argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", folder]
    # The runner inherits the lock of the GPU: if this process is killed, the GPU stays reserved.
    with subprocess.Popen(argv, env=environment, close_fds=False) as child:
        return signals.wait(child)


def _log_to(path: str) -> None:
    """Redirect standard output and error to the end of the file ``path``."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(fd, stream)
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
