"""Tell a job that computes on a GPU which was not given to it: in its log, once for each run.

The log is the file in which the process, or a process above it in the job, has its standard error;
otherwise the job's own log. Both come from the user. Therefore, a child process with the rights of
the user writes there, and nobody waits for it.
"""

from __future__ import annotations

import contextlib
import os
import stat

from sge_jobs.node.child import in_background
from sge_jobs.node.claim.answer import write_in
from sge_jobs.node.claim.processes import (
    ROOT,
    Process,
    read_process,
    shepherd_of,
    spool_of,
)
from sge_jobs.node.failed_start import LOG, append, unpack
from sge_jobs.node.gpus.inventory import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sge_jobs.gpu_state import GpuUse, Intruder

NAME = "sge_jobs_told"
_MOST_ABOVE = 50


def tell_strays(host: str, uses: Iterable[GpuUse]) -> None:
    """Write into the log of each job that computes on a GPU of ``uses`` which it was not given."""
    for use in uses:
        for intruder in use.intruders:
            if intruder.job:
                with contextlib.suppress(OSError):  # the job has ended
                    _tell(host, use, intruder)


def _tell(host: str, use: GpuUse, intruder: Intruder) -> None:
    process = read_process(intruder.pid)
    shepherd = shepherd_of(process)
    if process is None or shepherd is None or process.uid == ROOT:
        return
    spool = spool_of(shepherd)
    if not spool or not _is_first(spool, shepherd):
        return
    words = (
        f"sge-jobs: {host}: process {process.pid} ({intruder.command}) of job {intruder.job}"
        f" computes on GPU {use.index} ({use.uuid}), which was not given to this job. Keep"
        " CUDA_VISIBLE_DEVICES as Grid Engine's starter sets it.\n"
    )
    text = words.encode("utf-8", "replace").decode()
    found, group = process, os.stat(f"/proc/{process.pid}").st_gid

    def write() -> None:
        _become(found, group)
        _write(text, found, spool)

    in_background(write)


def _is_first(spool: str, shepherd: Process) -> bool:
    """Whether this run of the job was not told before; remember that it is now."""
    mark = f"{shepherd.pid} {shepherd.started}\n"
    try:
        if read_text(f"{spool}/{NAME}") == mark:
            return False
    except FileNotFoundError:
        pass
    write_in(spool, NAME, mark)
    return True


def _become(process: Process, group: int) -> None:
    os.setgroups(sorted(process.groups))
    os.setresgid(group, group, group)
    os.setresuid(process.uid, process.uid, process.uid)


def _write(text: str, process: Process, spool: str) -> None:
    for path in _standard_errors(process):
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                append(path, text)
                return
        except OSError:
            continue
    append(_own_log(spool), text)


def _standard_errors(process: Process) -> Iterable[str]:
    """Yield the standard error of the process and of the processes above it in its job."""
    above: Process | None = process
    for _ in range(_MOST_ABOVE):
        if above is None or above.is_shepherd:
            return
        yield f"/proc/{above.pid}/fd/2"
        above = read_process(above.parent)


def _own_log(spool: str) -> str:
    """Return the log that the job was submitted with; empty if it has none."""
    try:
        lines = read_text(f"{spool}/environment", 1 << 22).split("\n")
        packed = next((line for line in lines if line.startswith(f"{LOG}=")), "")
        path = unpack(packed.partition("=")[2])
    except (OSError, ValueError):
        return ""
    return path if path.startswith("/") else ""
