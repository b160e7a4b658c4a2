"""How a job ended: from slurmctld while it remembers the job, then from the accounting."""

from __future__ import annotations

import re
from calendar import timegm
from time import strptime

from spearmint.drivers.queue import EndedRun

ACCOUNTING = "JobIDRaw,State,ExitCode,ElapsedRaw,End,NodeList"
"""Argument of ``sacct --format``."""

_LIMITS = {"OUT_OF_MEMORY": "memory", "DEADLINE": "deadline"}
_LOST = ("BOOT_FAIL", "LAUNCH_FAILED", "NODE_FAIL", "PREEMPTED", "RECONFIG_FAIL", "REVOKED")
_UNFINISHED = (
    *("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "RESIZING"),
    *("REQUEUE_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED"),
)
_FIELD = re.compile(r"(?:^|\s)([A-Za-z]+)=(\S*)")


def parse_job(text: str) -> dict[str, str]:
    """Return the fields of ``scontrol --oneliner show job``, the first of each name."""
    fields: dict[str, str] = {}
    for name, value in _FIELD.findall(text):
        fields.setdefault(name, value)
    return fields


def run_of_job(fields: dict[str, str]) -> EndedRun | None:
    """Return how the job in :func:`parse_job` ended; None if it has not ended."""
    host = fields.get("NodeList", "").replace("(null)", "")
    return _run(
        fields.get("JobState", ""),
        fields.get("ExitCode", ""),
        _seconds(fields.get("RunTime", "")),
        fields.get("EndTime", ""),
        host,
    )


def parse_accounting(text: str) -> list[EndedRun]:
    """Return the ended runs in the output of ``sacct --parsable2 --noheader``."""
    runs = []
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) == 6:
            _, state, code, seconds, ended, host = fields
            elapsed = float(seconds) if seconds.isdigit() else 0.0
            found = _run(state, code, elapsed, ended, host.replace("None assigned", ""))
            runs += [found] if found is not None else []
    return runs


def _run(state: str, code: str, seconds: float, ended: str, host: str) -> EndedRun | None:
    kind = state.partition(" ")[0]  # "CANCELLED by 1000"
    if not kind or kind in _UNFINISHED:
        return None
    status, _, signal = code.partition(":")
    number = int(signal) if signal.isdigit() else 0
    is_cancelled = kind == "CANCELLED" and not number
    return EndedRun(
        host=host,
        ended=_time(ended),
        seconds=seconds,
        exit_status=int(status) if status.isdigit() else 0,
        signal=number,
        timed_out=kind == "TIMEOUT",
        limit=_LIMITS.get(kind, ""),
        failure=state if kind in _LOST or is_cancelled else "",
    )


def _time(text: str) -> float:
    """Return seconds since the epoch of a time in UTC; 0 for ``Unknown``."""
    try:
        return float(timegm(strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return 0.0


def _seconds(text: str) -> float:
    """Return the seconds of a duration ``[D-]HH:MM:SS``."""
    days, _, clock = text.rpartition("-")
    parts = [int(part) if part.isdigit() else 0 for part in clock.split(":")]
    total = 0
    for part in parts:
        total = total * 60 + part
    return float(total + 86400 * (int(days) if days.isdigit() else 0))
