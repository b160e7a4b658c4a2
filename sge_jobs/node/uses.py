"""What the sensor reports of each GPU: its job, and processes that should not use it."""

from __future__ import annotations

from sge_jobs.gpu_state import SHARE_SLACK, GpuStatus, GpuUse, Intruder, Share
from sge_jobs.node.claim.processes import (
    Process,
    job_of_spool,
    read_process,
    shepherd_of,
    spool_of,
)
from sge_jobs.node.claim.record import WHOLE, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sge_jobs.node.claim.lock_state import LockState
    from sge_jobs.node.gpus.detect import GpuProcess
    from sge_jobs.node.gpus.inventory import Gpu

_TOLERATED = ("nvidia-cuda-mps",)


def intruders(
    processes: Iterable[GpuProcess], states: Sequence[LockState], proc: str = "/proc"
) -> dict[str, tuple[Intruder, ...]]:
    """Return the processes on a GPU that belong to no job which has the GPU, by UUID."""
    by_uuid = {state.uuid: state for state in states}
    found: dict[str, tuple[Intruder, ...]] = {}
    for one in processes:
        process = read_process(one.pid, proc)
        state = by_uuid.get(one.uuid)
        if process is None or state is None or one.name.startswith(_TOLERATED):
            continue
        if any(_belongs(process, record, proc) for record in state.holders):
            continue
        intruder = Intruder(
            pid=one.pid, command=one.name, foreign=True, job=_job_of(process, states, proc)
        )
        found[one.uuid] = (*found.get(one.uuid, ()), intruder)
    return found


def _belongs(process: Process, record: Record, proc: str) -> bool:
    if record.group and record.group in process.groups:
        return True
    shepherd = shepherd_of(process, proc=proc)
    if shepherd is None:
        return False
    job, task, _ = job_of_spool(spool_of(shepherd, proc))
    return (job, task) == (record.job, record.task or "1")


def _job_of(process: Process, states: Sequence[LockState], proc: str) -> str:
    """Return the job of ``process``, of another GPU or of none; empty outside Grid Engine."""
    for record in (record for state in states for record in state.holders):
        if _belongs(process, record, proc):
            return record.label
    shepherd = shepherd_of(process, proc=proc)
    if shepherd is None:
        return ""
    job, task, _ = job_of_spool(spool_of(shepherd, proc))
    return job if task in ("", "1") else f"{job}.{task}"


def use_of(
    gpu: Gpu, state: LockState, foreign: Sequence[Intruder], *, has_daemon: bool = True
) -> GpuUse:
    """Return the report on one GPU: who uses it.

    Args:
        has_daemon: Whether the MPS daemon of the jobs that share it runs.
    """
    shares = [record for record in state.running if record.share < WHOLE and not record.parallel]
    record = state.record
    if state.outlived:
        status = GpuStatus.OUTLIVED
    elif state.problem:
        status = GpuStatus.BLOCKED
    elif shares:
        status = GpuStatus.SHARED if has_daemon else GpuStatus.TURNS
    elif not state.free:
        status = GpuStatus.HELD
    else:
        status = GpuStatus.BLOCKED if foreign else GpuStatus.FREE
    left = [Intruder(pid=p.pid, command=p.name) for p in state.processes]
    return GpuUse(
        index=gpu.index,
        uuid=gpu.uuid,
        status=status,
        job=record.job if record is not None else "",
        task=record.task if record is not None else "",
        user=record.user if record is not None else "",
        since=record.since if record is not None else 0,
        intruders=(*left, *foreign),
        shares=tuple(Share(one.job, one.task, one.share) for one in shares),
    )


def for_scheduler(uses: Sequence[GpuUse], given: int = 0) -> int:
    """Return the load value ``gpu``: the number of GPUs, or of free GPUs if some are not usable.

    Grid Engine uses the smaller of this value and the number that it has not given to jobs.

    Args:
        given: Number of GPUs that the cell configures for this host; some may have failed.
    """
    usual = (GpuStatus.FREE, GpuStatus.HELD)
    if len(uses) < given or any(use.status not in usual for use in uses):
        return sum(use.status is GpuStatus.FREE for use in uses)
    return len(uses)


def shares_left(uses: Iterable[GpuUse]) -> str:
    """Return the load value ``gpu_share``: how much is left of the GPUs that jobs can share.

    It is slightly more, because Grid Engine adds and subtracts requests as floating-point numbers:
    otherwise a request for all that is left can fail.
    """
    left = 0
    for use in uses:
        if use.status is GpuStatus.FREE:
            left += WHOLE
        elif use.status in (GpuStatus.SHARED, GpuStatus.TURNS):
            left += WHOLE - sum(share.thousandths for share in use.shares)
    return f"{left / WHOLE + SHARE_SLACK:g}" if left else "0"
