"""Problems of the GPUs of a host: who uses them and should not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sge_jobs.cell.problem import Problem
from sge_jobs.gpu_state import GpuStatus, GpuUse, Intruder
from sge_jobs.model import Host


def use_problems(host: Host, use: GpuUse) -> Iterator[Problem]:
    """Yield the problems of one GPU."""
    where = f"GPU {use.index} of host {host.name}"
    strays = [process for process in use.intruders if process.job]
    for job in dict.fromkeys(process.job for process in strays):
        names = _names(process for process in strays if process.job == job)
        yield Problem(
            what=f"job {job} uses {where}, which was not given to it: {names}",
            fix=f"Tell its owner to keep CUDA_VISIBLE_DEVICES as it is; end the job: qdel {job}",
        )
    others = [process for process in use.intruders if not process.job]
    pids = " ".join(str(process.pid) for process in others)
    fix = (
        f"On {host.name}: kill {pids}" if pids else f"Show its processes on {host.name}: nvidia-smi"
    )
    if use.status is GpuStatus.OUTLIVED:
        job = f"{use.job}.{use.task}" if use.task else use.job
        what = (
            f"{where} is in use by leftover processes of job {job}, which ended: {_names(others)}"
        )
        yield Problem(what=what, fix=fix)
    elif use.status is GpuStatus.BLOCKED and others:
        what = f"{where} is blocked by a process outside Grid Engine: {_names(others)}"
        yield Problem(what=what, fix=fix)
    elif use.status is GpuStatus.BLOCKED and not strays:
        yield Problem(
            what=f"{where} is blocked: its file in /run/sge_jobs/locks cannot be used",
            fix=f"See the messages file of the execution daemon of {host.name}",
        )
    elif others:
        what = f"{where} is also in use by processes outside its job: {_names(others)}"
        yield Problem(what=what, fix=fix)


def _names(processes: Iterable[Intruder]) -> str:
    return ", ".join(f"{process.pid} {process.command}".strip() for process in processes)
