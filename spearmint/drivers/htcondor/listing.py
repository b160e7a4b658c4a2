"""Jobs and hosts from the ClassAds of condor_q and condor_status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spearmint.drivers.htcondor.description import TOKEN
from spearmint.drivers.htcondor.holds import is_removed
from spearmint.drivers.queue import QueueHost, QueueJob, QueueJobState

JOB = (
    *("ClusterId", "ProcId", "JobStatus", "NumShadowStarts", "RemoteHost", TOKEN),
    *("HoldReason", "HoldReasonCode", "HoldReasonSubCode"),
)
"""Attributes of a job."""
SLOT = ("Machine", "TotalSlotCpus", "TotalSlotGPUs", "State", "Offline")
"""Attributes of a slot."""

_IDLE, _REMOVED, _COMPLETED, _HELD, _SUSPENDED = 1, 3, 4, 5, 7
_STATES = {
    _IDLE: QueueJobState.PENDING,
    _REMOVED: QueueJobState.ENDING,  # until its host has confirmed that it ended
    _HELD: QueueJobState.HELD,
    _SUSPENDED: QueueJobState.SUSPENDED,
}
_UNUSABLE = ("Drained", "Owner")


def parse_jobs(ads: Sequence[Mapping[str, Any]]) -> list[QueueJob]:
    """Return the jobs that have not ended; a job can stay in the queue after its end."""
    return [_job(ad) for ad in ads if "ClusterId" in ad and ad.get("JobStatus") != _COMPLETED]


def job_id(ad: Mapping[str, Any]) -> str:
    """Return the id of a job, such as ``17.0``."""
    return f"{ad['ClusterId']}.{ad.get('ProcId', 0)}"


def _job(ad: Mapping[str, Any]) -> QueueJob:
    status = ad.get("JobStatus")
    state = _STATES.get(status, QueueJobState.RUNNING)  # type: ignore[arg-type]
    starts = int(ad.get("NumShadowStarts", 0))
    is_rerun = starts > (1 if state in (QueueJobState.RUNNING, QueueJobState.SUSPENDED) else 0)
    text = ""
    if state is QueueJobState.PENDING and is_rerun:
        state, text = QueueJobState.PREEMPTED, "idle"
    if state is QueueJobState.HELD:
        text = str(ad.get("HoldReason", ""))
        if is_removed(ad.get("HoldReasonCode"), ad.get("HoldReasonSubCode")):
            state = QueueJobState.ENDING
    return QueueJob(
        id=job_id(ad),
        token=str(ad.get(TOKEN, "")),
        state=state,
        text=text,
        host=host_of(ad.get("RemoteHost")),
        is_rerun=is_rerun,
    )


def host_of(slot: str | None) -> str:
    """Return the host of a slot such as ``slot1_2@node001``; empty for none."""
    return (slot or "").rpartition("@")[2]


def parse_hosts(ads: Sequence[Mapping[str, Any]]) -> list[QueueHost]:
    """Return a host for each slot that accepts jobs; one that is divided counts as a whole."""
    return [
        QueueHost(
            name=str(ad["Machine"]),
            slots=_count(ad, "TotalSlotCpus", 1),
            gpus=_count(ad, "TotalSlotGPUs", 0),
        )
        for ad in ads
        if "Machine" in ad and ad.get("State") not in _UNUSABLE and ad.get("Offline") is not True
    ]


def _count(ad: Mapping[str, Any], name: str, default: int) -> int:
    """Return a number of an ad; the default if it is missing, undefined or an expression."""
    value = ad.get(name)
    return int(value) if isinstance(value, int | float) else default
