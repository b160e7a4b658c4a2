"""Read the result that a runner wrote into the folder of its trial."""

from __future__ import annotations

import math
from typing import TypeGuard

from spearmint.layout import TrialFolder, read_json
from spearmint.model import Result
from spearmint.trial.gpu_memory import OUT_OF_MEMORY
from spearmint.trial.reporting import read_reports

TOGETHER = "together"
"""Key of result.json: the job of several trials failed, and any of them can be the cause."""


def read_result(folder: TrialFolder, key: str) -> Result | None:
    """Return the result of the trial with this ``key``; None if there is none.

    A file of another trial, a truncated file, or a file that no runner wrote is ignored.
    """
    raw = read_json(folder.result)
    if raw is None or raw.get("key") != key:
        return None
    value, reason, seconds = raw.get("value"), raw.get("reason"), raw.get("seconds")
    if not (_is_number(value) or isinstance(reason, str)):
        return None
    reports = read_reports(folder.reports)
    return Result(
        value=float(value) if _is_number(value) else None,
        reason=str(reason or ""),
        out_of_memory=raw.get(OUT_OF_MEMORY) is True,
        together=raw.get(TOGETHER) is True,
        seconds=float(seconds) if _is_number(seconds) else None,
        reports={step: value for step, value in reports.items() if math.isfinite(value)},
        objectives=_numbers(raw.get("objectives")),
        constraints=_numbers(raw.get("constraints")),
    )


def _numbers(held: object) -> dict[str, float]:
    """Return the numbers of a JSON object by name; empty for anything else."""
    items = held.items() if isinstance(held, dict) else ()
    return {str(name): float(value) for name, value in items if _is_number(value)}


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not math.isnan(value)
