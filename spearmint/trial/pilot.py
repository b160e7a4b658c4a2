"""A pilot job runs a trial, then pending trials: ``-m spearmint.trial.pilot TOKEN FOLDER``.

After a job ends, a queue needs about a second to start the next one (Grid Engine, measured). A job
that runs the next trial itself leaves its GPU idle for a third of that. This module imports only
the standard library.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spearmint.trial.environment import DONE_FILE, JOB_ID_VARIABLE, PENDING_DIR, RETRY_S
from spearmint.trial.leftovers import adopt_orphans, end_as
from spearmint.trial.pending import PendingTrials
from spearmint.trial.pilot_runs import PilotRuns, Signals
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
    signals = Signals()
    runs = PilotRuns(signals)
    status = runs.run(folder, environment)
    while status == 0 and time.monotonic() - began < _MAX_AGE_S:
        runs.end_leftovers()
        trial = _wait_for_trial(pending, job, signals)
        if trial is None:
            status = -signals.received
            break
        retry_os_error(partial(_log_to, trial["output"]), retry_s)
        status = runs.run(trial["folder"], {**environment, DONE_FILE: trial["ended"]})
    runs.close()
    return end_as(status)


def _job_id(environment: Mapping[str, str]) -> str:
    """Return the id that the queue gave this job."""
    return environment[environment[JOB_ID_VARIABLE]]


def _wait_for_trial(pending: PendingTrials, job: str, signals: Signals) -> dict[str, Any] | None:
    deadline = time.monotonic() + _WAIT_S
    while not signals.received:
        with contextlib.suppress(OSError):
            if (trial := pending.take_next(job)) is not None:
                return trial
        if time.monotonic() >= deadline:
            break
        time.sleep(_STEP_S)
    return None


def _log_to(path: str) -> None:
    """Redirect standard output and error to the end of the file ``path``."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(fd, stream)
    os.close(fd)


if __name__ == "__main__":
    sys.exit(main())
