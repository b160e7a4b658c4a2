"""Whose a GPU is: its lock, the record in its lock file, and that job's processes.

Grid Engine reuses the additional group of a job that is over, so a group alone identifies no job.
"""

from __future__ import annotations

from sge_jobs.node.claim.processes import Process, job_of_shepherd, shepherd_of
from sge_jobs.node.claim.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LockState:
    """What is known of one GPU's lock.

    Attributes:
        held: Whether some process holds the lock.
        shared: Whether tasks of a parallel job hold it together.
        record: Who took it last; None when nobody is known.
        job_alive: Whether the job of the record still runs.
        processes: Of the record's job, those that live.
        problem: Why the lock file cannot be used; empty for a good one.
    """

    __slots__ = ("held", "job_alive", "problem", "processes", "record", "shared", "uuid")

    def __init__(
        self,
        *,
        uuid: str,
        held: bool = False,
        shared: bool = False,
        record: Record | None = None,
        job_alive: bool = False,
        processes: Sequence[Process] = (),
        problem: str = "",
    ) -> None:
        self.uuid = uuid
        self.held = held
        self.shared = shared
        self.record = record
        self.job_alive = job_alive
        self.processes = tuple(processes)
        self.problem = problem

    @property
    def free(self) -> bool:
        """Whether a job may have the GPU."""
        return not self.held and not self.processes and not self.problem

    @property
    def outlived(self) -> bool:
        """Whether processes keep the GPU though their job is over."""
        return not self.free and not self.job_alive and not self.problem and bool(self.record)


def survivors(record: Record, processes: dict[int, Process]) -> list[Process]:
    """Return the living processes of the job in ``record``.

    Grid Engine uses a group again once its job is over: a process below another job's shepherd, or
    one that began after that shepherd, is not this job's.
    """
    if record.group <= 0:
        return []
    found = [process for process in processes.values() if record.group in process.groups]
    found.sort(key=lambda process: (process.started, process.pid))
    others = {}
    for process in found:
        shepherd = shepherd_of(process, processes)
        if shepherd is not None and not is_shepherd_of(record, shepherd):
            others[process.pid] = shepherd.started
    newer = min(others.values(), default=None)
    return [
        process
        for process in found
        if process.pid not in others and (newer is None or process.started < newer)
    ]


def of_same_job(record: Record, shepherd: Process, proc: str = "/proc") -> bool:
    """Whether ``shepherd`` watches the job of ``record``, or one of its parallel tasks."""
    return job_of_shepherd(shepherd, proc) == (record.job, record.task or "1")


def is_shepherd_of(record: Record, shepherd: Process) -> bool:
    """Whether ``shepherd`` is the very process that watched the job of ``record``."""
    return (shepherd.pid, shepherd.started) == (record.shepherd, record.shepherd_started)
