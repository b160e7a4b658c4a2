"""How a queued job ended without a result, for people."""

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
    """Return how a job ended, from the last of its runs.

    Args:
        runs: From the queue's accounting; None when the queue has none.
        walltime_s: How long it was allowed to run; a job that ran as long timed out.
    """
    if not runs:
        return JobEnd(f"its job is gone without a result, and {_silence(runs, dialect)}")
    last = max(runs, key=lambda run: run.ended)
    where = f" on {last.host}" if last.host else ""
    if last.timed_out or (walltime_s is not None and last.seconds >= walltime_s):
        limit = "" if walltime_s is None else f" of {format_duration(walltime_s)}"
        return JobEnd(f"timed out: it reached the walltime{limit}{where}", again=False)
    if last.limit:
        return JobEnd(f"it reached a limit of its queue ({last.limit}){where}", again=False)
    if last.signal:
        cancel = dialect.cancel.partition(" ")[0]
        causes = f"by {cancel}, for its memory, or by hand" if cancel else "cancelled or by hand"
        name = signal_name(last.signal)
        return JobEnd(f"killed by signal {last.signal} ({name}){where}: {causes}")
    if last.failure:
        return JobEnd(f"{dialect.queue} ended it{where}: {last.failure}")
    return JobEnd(f"exited with status {last.exit_status}{where} before main returned")


def ended_runs(queue: Queue, id: str) -> Sequence[EndedRun] | None:
    """Return what the queue's accounting says of a job, once it does; None without accounting.

    It is waited for 3 s; a queue that does not answer says nothing.
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
    return f"{dialect.accounting or dialect.queue} does not know it yet"
