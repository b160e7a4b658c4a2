"""Jobs in the error state, and jobs that a host puts back into the queue again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sge_jobs.cell.problem import Problem
from sge_jobs.model import JobStatus, QueuedJob
from sge_jobs.node.failed_start import FailedStart

AGAIN_AND_AGAIN = 3
"""Number of failed starts in a row on one host."""

_MOST_SHOWN = 10


def may_be_stuck(job: QueuedJob) -> bool:
    """Whether to look why ``job`` does not start."""
    return job.status is JobStatus.ERROR or "R" in job.state


def stuck_problems(
    jobs: Sequence[QueuedJob], starts: Mapping[str, FailedStart]
) -> Iterator[Problem]:
    """Yield the problems of ``jobs``, one for the jobs of a user with the same reason.

    Args:
        starts: Last failed start of each job that has one.
    """
    groups: dict[tuple[str, str, str, bool], dict[str, None]] = {}
    for job in jobs:
        start = starts.get(job.id)
        is_error = job.status is JobStatus.ERROR
        if is_error or (start is not None and start.times >= AGAIN_AND_AGAIN):
            host, reason = (start.host, start.reason) if start is not None else ("", "")
            groups.setdefault((job.owner, host, reason, is_error), {})[job.id] = None
    for (owner, host, reason, is_error), ids in groups.items():
        yield _problem(owner, host, reason, list(ids), is_error)


def _problem(owner: str, host: str, reason: str, ids: list[str], is_error: bool) -> Problem:
    more = f" and {len(ids) - _MOST_SHOWN} more" if len(ids) > _MOST_SHOWN else ""
    shown = ids[:_MOST_SHOWN]
    jobs = f"{'jobs' if len(ids) > 1 else 'job'} {', '.join(shown)}{more} of {owner}"
    verb = "are" if len(ids) > 1 else "is"
    where = f"could not start on {host}: " if host else ""
    why = where + (reason or "Grid Engine gives no reason")
    numbers = " ".join(shown)
    if is_error:
        return Problem(
            what=f"{jobs} {verb} in state E (error): {why}",
            fix=f"Fix this, then rerun with: qmod -cj {numbers}    Or delete: qdel {numbers}",
        )
    return Problem(
        what=f"{jobs} {verb} rescheduled again and again: {why}",
        fix=f"Fix this on {host}. Or delete: qdel {numbers}",
    )
