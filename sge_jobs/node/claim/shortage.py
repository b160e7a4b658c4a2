"""Say who has the GPUs that a job cannot get."""

from __future__ import annotations

import time

from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.record import Record
from sge_jobs.node.gpus.inventory import Inventory


def shortage(mine: Record, wanted: int, states: list[LockState], known: Inventory) -> str:
    """Return the message for a job that cannot get its GPUs: who has each of them."""
    free = sum(state.free for state in states)
    lines = [f"job {mine.label} needs {wanted} GPU(s) on this host, {free} free:"]
    lines += [f"  {state.uuid}: {describe(state)}" for state in states]
    for uuid in known.uuids:
        if pids := known.blockers(uuid):
            lines.append(f"  {uuid}: used from outside Grid Engine by {', '.join(map(str, pids))}")
    lines.append("It is put back into the queue. Look with: sge-jobs gpus")
    return "\n".join(lines)


def describe(state: LockState) -> str:
    """Return in a few words who has the GPU of ``state``."""
    if state.problem:
        return state.problem
    if state.free:
        return "free"
    if state.record is None:
        return "locked by an unknown process"
    holder = f"job {state.record.label} of {state.record.user} since {_date(state.record.since)}"
    if not state.outlived:
        return holder
    left = ", ".join(f"{process.pid} ({process.name})" for process in state.processes[:5])
    return f"processes that outlived {holder}: {left or 'unknown'}; end them to free it"


def _date(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OSError, OverflowError, ValueError):
        return "an unknown time"
