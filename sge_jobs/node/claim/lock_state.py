"""The state of a GPU: its lock, the record in its lock file, and the processes of that job.

Grid Engine reuses the additional group of an ended job, so a group alone does not identify a job.
"""

from __future__ import annotations

from sge_jobs.node.claim.processes import Process, job_of_shepherd, shepherd_of
from sge_jobs.node.claim.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LockState:
    """The state of one GPU's lock.

    Attributes:
        held: Whether a process holds the lock.
        shared: Whether tasks of a parallel job share it.
        record: The job that took it last; None if unknown.
        job_alive: Whether the job of the record still runs.
        processes: Running processes of the job of the record.
        problem: Why the lock file cannot be used; empty if it can.
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
        """Whether a job can claim the GPU."""
        return not self.held and not self.processes and not self.problem

    @property
    def outlived(self) -> bool:
        """Whether leftover processes of an ended job use the GPU."""
        return not self.free and not self.job_alive and not self.problem and bool(self.record)


def running_processes(record: Record, processes: dict[int, Process]) -> list[Process]:
    """Return the running processes of the job in ``record``.

    Grid Engine reuses the group of an ended job. Therefore, a process below the shepherd of another
    job, or a process that started after that shepherd, does not belong to this job.
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
    """Whether ``shepherd`` supervises the job of ``record`` or one of its parallel tasks."""
    return job_of_shepherd(shepherd, proc) == (record.job, record.task or "1")


def is_shepherd_of(record: Record, shepherd: Process) -> bool:
    """Whether ``shepherd`` is the process that started the job of ``record``."""
    return (shepherd.pid, shepherd.started) == (record.shepherd, record.shepherd_started)
