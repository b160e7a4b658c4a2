"""The state of a GPU: the jobs in its file that still run, and processes that jobs left.

Grid Engine reuses the additional group of an ended job, so a group alone does not identify a job.
"""

from __future__ import annotations

from sge_jobs.node.claim.processes import Process, read_process, shepherd_of
from sge_jobs.node.claim.record import WHOLE, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class LockState:
    """The state of one GPU.

    Attributes:
        holders: Records of the jobs that have it, in the order of its file.
        ended: Those of ended jobs that left processes.
        processes: These processes.
        problem: Why the file of the GPU cannot be used; empty if it can.
    """

    __slots__ = ("ended", "holders", "problem", "processes", "uuid")

    def __init__(
        self,
        *,
        uuid: str,
        holders: Sequence[Record] = (),
        ended: Sequence[Record] = (),
        processes: Sequence[Process] = (),
        problem: str = "",
    ) -> None:
        self.uuid = uuid
        self.holders = tuple(holders)
        self.ended = tuple(ended)
        self.processes = tuple(processes)
        self.problem = problem

    @property
    def running(self) -> list[Record]:
        """The records of jobs that run."""
        return [record for record in self.holders if record not in self.ended]

    @property
    def record(self) -> Record | None:
        """The job to name: the first one that left processes or runs; None if there is none."""
        return next(iter((*self.ended, *self.holders)), None)

    @property
    def free(self) -> bool:
        """Whether a job can have the GPU for itself."""
        return not self.holders and not self.problem

    @property
    def outlived(self) -> bool:
        """Whether leftover processes of an ended job use the GPU."""
        return bool(self.ended) and not self.problem

    @property
    def unused(self) -> int:
        """Thousandths that no job has; 0 with leftover processes."""
        if self.ended or self.problem:
            return 0
        shares = {(record.job, record.task): record.share for record in self.running}
        return max(0, WHOLE - sum(shares.values()))


def is_running(record: Record, proc: str = "/proc") -> bool:
    """Whether the shepherd of the record, which ends with its job, still runs."""
    shepherd = read_process(record.shepherd, proc)
    return shepherd is not None and is_shepherd_of(record, shepherd)


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


def is_shepherd_of(record: Record, shepherd: Process) -> bool:
    """Whether ``shepherd`` is the process that started the job of ``record``."""
    return shepherd.is_shepherd and (shepherd.pid, shepherd.started) == record.identity
