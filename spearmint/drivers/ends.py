"""Explain to users how a queued job ended without a result."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from spearmint.drivers.base import JobEnd
from spearmint.drivers.queue import Dialect, EndedRun, Queue
from spearmint.errors import DriverError
from spearmint.formatting import format_duration
from spearmint.trial.languages import signal_name

_ACCOUNTING_S = 3.0


def explain_end(
    runs: Sequence[EndedRun] | None, dialect: Dialect, walltime_s: float | None
) -> JobEnd:
    """Return how a job ended, based on its last run.

    Args:
        runs: The runs in the queue's accounting; None if the queue has no accounting.
        walltime_s: Time limit of the job in seconds; a job that ran this long timed out.
    """
    if not runs:
        return JobEnd(f"its job disappeared without a result, and {_silence(runs, dialect)}")
    last = max(runs, key=lambda run: run.ended)
    where = f" on {last.host}" if last.host else ""
    if last.timed_out or (walltime_s is not None and last.seconds >= walltime_s):
        limit = "" if walltime_s is None else f" of {format_duration(walltime_s)}"
        return JobEnd(f"timed out: it reached the walltime{limit}{where}", again=False)
    if last.limit:
        return JobEnd(f"reached a limit of the queue ({last.limit}){where}", again=False)
    if last.signal:
        cancel = dialect.cancel.partition(" ")[0] or "cancelled"
        causes = f"possible causes: {cancel}, out of memory, or a user's kill"
        name = signal_name(last.signal)
        return JobEnd(f"killed by signal {last.signal} ({name}){where}; {causes}")
    if last.failure:
        return JobEnd(f"{dialect.queue} reported a failure{where}: {last.failure}")
    return JobEnd(f"exited with status {last.exit_status}{where} before main returned")


def ended_runs(queue: Queue, id: str) -> Sequence[EndedRun] | None:
    """Return the runs of a job in the queue's accounting; None if the queue has no accounting.

    Wait up to 3 s for the first record. The result is empty if there is no record by then, or if
    the queue does not answer.
    """
    deadline = time.monotonic() + _ACCOUNTING_S
    runs: Sequence[EndedRun] | None = ()
    with contextlib.suppress(DriverError):
        runs = queue.accounting(id)
        while runs is not None and not runs and time.monotonic() < deadline:
            time.sleep(0.2)
            runs = queue.accounting(id)
    return runs


def _silence(runs: Sequence[EndedRun] | None, dialect: Dialect) -> str:
    if runs is None:
        return f"{dialect.queue} does not record why"
    return f"{dialect.accounting or dialect.queue} has no record of it yet"
