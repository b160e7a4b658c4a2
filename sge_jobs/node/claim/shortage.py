"""Describe who uses the GPUs that a job cannot get."""

from __future__ import annotations

import time

from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.record import Record
from sge_jobs.node.gpus.inventory import Inventory


def shortage(mine: Record, wanted: int, states: list[LockState], known: Inventory) -> str:
    """Return the message for a job that cannot get its GPUs: who uses each of them."""
    free = sum(state.free for state in states)
    lines = [f"job {mine.label} requested {wanted} GPU(s), but {free} are free on this host:"]
    lines += [f"  {state.uuid}: {describe(state)}" for state in states]
    for uuid in known.uuids:
        if pids := known.blockers(uuid):
            lines.append(
                f"  {uuid}: used outside Grid Engine by process {', '.join(map(str, pids))}"
            )
    lines.append("The job goes back to the queue. List the GPUs: sge-jobs gpus")
    return "\n".join(lines)


def describe(state: LockState) -> str:
    """Return a short text about who uses the GPU of ``state``."""
    if state.problem:
        return state.problem
    if state.free:
        return "free"
    jobs = {
        record.label: f"job {record.label} of {record.user} since {_date(record.since)}"
        for record in state.ended or state.holders
    }
    holder = ", ".join(jobs.values())
    if not state.outlived:
        return holder
    left = ", ".join(f"{process.pid} ({process.name})" for process in state.processes[:5])
    return f"leftover processes of {holder}: {left or 'unknown'}; kill them to free the GPU"


def _date(seconds: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(seconds))
    except (OSError, OverflowError, ValueError):
        return "an unknown time"
