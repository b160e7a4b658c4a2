"""Report values on the way from inside a trial; standard library only."""

from __future__ import annotations

import os
from pathlib import Path

TRIAL_DIR = "SPEARMINT_TRIAL_DIR"
REPORTS = "reports.csv"


def report(step: int, value: float) -> None:
    """Report the objective at ``step`` (an epoch, say) of the running trial.

    The values become the loss curves of ``spearmint report``. Outside of a trial nothing
    happens, so the same ``main`` runs by hand. A full disk is no error either.
    """
    folder = os.environ.get(TRIAL_DIR)
    if not folder:
        return
    line = f"{int(step)},{float(value)!r}\n"
    try:
        with (Path(folder) / REPORTS).open("a", encoding="ascii") as file:
            file.write(line)
    except OSError:
        return


def read_reports(path: Path) -> dict[int, float]:
    """Return the values in ``path`` by step; a torn line and what is no number is left out."""
    reports: dict[int, float] = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return reports
    for line in lines:
        step, _, value = line.partition(",")
        try:
            reports[int(step)] = float(value)
        except ValueError:
            continue
    return reports
