"""How a run of a Grid Engine job ended, from its accounting record."""

from __future__ import annotations

from sge_jobs import AccountingRecord
from spearmint.drivers.queue import EndedRun

_LIMIT = 37  # "qmaster enforced h_rt, h_cpu, or h_vmem limit"
_SIGNALLED = 128


def ended_run(record: AccountingRecord, walltime_s: float | None) -> EndedRun:
    """Convert the record to the terms of :class:`~spearmint.drivers.queue.EndedRun`.

    Args:
        walltime_s: Walltime of the job. Grid Engine does not record which limit a job reached; if
            there is a walltime, it counts as the limit.
    """
    is_limit = record.failed == _LIMIT
    return EndedRun(
        host=record.host,
        ended=record.ended or 0.0,
        seconds=record.wallclock_s,
        exit_status=record.exit_status,
        signal=max(0, record.exit_status - _SIGNALLED),
        timed_out=is_limit and walltime_s is not None,
        limit="h_rt, h_cpu or h_vmem" if is_limit else "",
        failure=f"{record.failed} {record.failed_text}".rstrip() if record.failed else "",
    )
