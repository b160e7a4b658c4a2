"""How a Grid Engine job ended, in the words of its accounting record."""

from __future__ import annotations

from collections.abc import Sequence

from sge_jobs.model import AccountingRecord
from spearmint.drivers.base import JobEnd
from spearmint.formatting import format_duration
from spearmint.trial.languages import signal_name

_LIMIT = 37  # "qmaster enforced h_rt, h_cpu, or h_vmem limit"
_SIGNALLED = 128


def explain_end(records: Sequence[AccountingRecord], walltime_s: float | None) -> JobEnd:
    """Return how the job of ``records``, one for each of its runs, ended at last.

    Args:
        walltime_s: What it was allowed to run; a job that ran so long was timed out.
    """
    if not records:
        return JobEnd("its job is gone without a result, and qacct does not know it yet")
    last = max(records, key=lambda record: record.ended or 0.0)
    where = f" on {last.host}" if last.host else ""
    if _is_timed_out(last, walltime_s):
        limit = "" if walltime_s is None else f" of {format_duration(walltime_s)}"
        return JobEnd(f"timed out: it reached the walltime{limit}{where}", again=False)
    if last.failed == _LIMIT:
        return JobEnd(
            f"it reached a limit of its queue (h_rt, h_cpu or h_vmem){where}", again=False
        )
    if last.exit_status > _SIGNALLED:
        signal = last.exit_status - _SIGNALLED
        return JobEnd(
            f"killed by signal {signal} ({signal_name(signal)}){where}: by qdel, for its memory, "
            "or by hand"
        )
    if last.failed:
        return JobEnd(f"Grid Engine ended it{where}: {last.failed} {last.failed_text}".rstrip())
    return JobEnd(f"exited with status {last.exit_status}{where} before main returned")


def _is_timed_out(record: AccountingRecord, walltime_s: float | None) -> bool:
    if walltime_s is not None and record.wallclock_s >= walltime_s:
        return True
    return record.failed == _LIMIT and walltime_s is not None
