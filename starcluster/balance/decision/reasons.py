"""Texts that explain a decision; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from starcluster.balance.cell.model import Job, JobState

_SHOWN = 3


def jobs_text(count: int, kind: str = "") -> str:
    """Return ``1 job`` or ``4 jobs``, with a word before ``job``."""
    return f"{count} {kind}job{'' if count == 1 else 's'}"


def counted(jobs: Iterable[Job]) -> str:
    """Return ``1 held job and 2 error jobs are``, the beginning of a sentence."""
    counts = Counter[JobState]()
    for job in jobs:
        counts[job.state] += job.tasks
    words = [jobs_text(counts[state], f"{state} ") for state in JobState if counts[state]]
    return " and ".join(words) + (" are" if counts.total() > 1 else " is")


def described(job: Job) -> str:
    """Return the number of a job and its requests as options of qsub."""
    options = [f"-pe {job.pe} {job.slots}"] if job.pe else []
    if job.requests:
        options.append("-l " + ",".join(f"{name}={text}" for name, text in job.requests.items()))
    if job.queues:
        options.append(f"-q {','.join(job.queues)}")
    return f"job {job.id}: {' '.join(options) or '1 slot'}"


def refused(stuck: Iterable[tuple[Job, str]]) -> list[str]:
    """Return why new nodes do not help jobs; equal reasons once."""
    jobs: dict[str, list[str]] = {}
    for job, why in stuck:
        jobs.setdefault(why, []).append(job.id)
    texts = []
    for why, ids in jobs.items():
        more = f" and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else ""
        who = f"job{'s' if len(ids) > 1 else ''} {', '.join(ids[:_SHOWN])}{more}"
        texts.append(f"{who} wait{'' if len(ids) > 1 else 's'}: {why}")
    return texts
