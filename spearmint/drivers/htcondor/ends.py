"""How a job ended, from the ClassAd of condor_history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spearmint.drivers.htcondor.holds import LIMITS, TIMES
from spearmint.drivers.htcondor.listing import host_of
from spearmint.drivers.queue import EndedRun

END = (
    *("ClusterId", "ProcId", "JobStatus", "CompletionDate", "EnteredCurrentStatus"),
    *("JobCurrentStartDate", "LastRemoteHost", "ExitCode", "ExitBySignal", "ExitSignal"),
    *("LastHoldReason", "LastHoldReasonCode", "LastJobStatus", "RemoveReason"),
)
"""Attributes of an ended job."""

_REMOVED, _HELD = 3, 5


def parse_end(ad: Mapping[str, Any]) -> EndedRun:
    """Return the last run of an ended job."""
    ended = float(ad.get("CompletionDate") or ad.get("EnteredCurrentStatus", 0))
    began = float(ad.get("JobCurrentStartDate", ended))
    host = host_of(ad.get("LastRemoteHost"))
    seconds = max(0.0, ended - began)
    if ad.get("JobStatus") != _REMOVED:
        is_signal = bool(ad.get("ExitBySignal", False))
        return EndedRun(
            host=host,
            ended=ended,
            seconds=seconds,
            exit_status=0 if is_signal else int(ad.get("ExitCode", 0)),
            signal=int(ad.get("ExitSignal", 0)) if is_signal else 0,
        )
    was_held = ad.get("LastJobStatus") == _HELD
    code = ad.get("LastHoldReasonCode") if was_held else None
    reason = ad.get("LastHoldReason") if was_held else None
    text = str(reason or ad.get("RemoveReason") or "removed")
    return EndedRun(
        host=host,
        ended=ended,
        seconds=seconds,
        timed_out=code in TIMES,
        limit=text if code in LIMITS else "",
        failure=text,
    )
