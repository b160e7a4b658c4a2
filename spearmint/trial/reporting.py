"""Report intermediate values from inside a trial. Imports only the standard library."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from spearmint.trial.environment import RANK, REGION, REPORTS_FILE

_LAST_STEP = 2**31 - 1


def report(step: int, value: float) -> None:
    """Report the objective at ``step`` of the running trial.

    ``step`` is for example an epoch, 0 to 2**31 - 1. The report of ``spearmint report`` plots the
    values as loss curves. Outside of a trial, for example when you call ``main`` yourself, this
    function does nothing. If the disk is full, the value is lost without an error. If torchrun
    started the trial's processes, only the values of rank 0 are stored.
    """
    path = os.environ.get(REPORTS_FILE)
    if not path or os.environ.get(RANK, "0") != "0":
        return
    add_report(Path(path), step, value)


def add_report(path: Path, step: int, value: float) -> None:
    """Append the value at ``step`` to the file ``path``; if the disk is full, it is lost."""
    line = f"{int(step)},{float(value)!r}\n"
    with contextlib.suppress(OSError), path.open("a", encoding="ascii") as file:
        file.write(line)


def region() -> str:
    """Return the region of the running trial; empty outside of a trial or without regions."""
    return os.environ.get(REGION, "")


def read_reports(path: Path) -> dict[int, float]:
    """Return the values in ``path`` by step; skip truncated lines and text that is not a number."""
    reports: dict[int, float] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return reports
    for line in lines:
        step, _, value = line.partition(",")
        try:
            if 0 <= int(step) <= _LAST_STEP:
                reports[int(step)] = float(value)
        except ValueError:
            continue
    return reports
