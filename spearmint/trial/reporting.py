"""Report values on the way from inside a trial; standard library only."""

from __future__ import annotations

import os
from pathlib import Path

TRIAL_DIR = "SPEARMINT_TRIAL_DIR"
"""Environment variable: the folder for a trial's own files; also the mark of its processes."""

REPORTS_FILE = "SPEARMINT_REPORTS"
"""Environment variable: the file of lines ``step,value``."""

REGION = "SPEARMINT_REGION"
"""Environment variable: the region of the trial; empty where there are none."""

ENDED_FILE = "SPEARMINT_ENDED"
"""Environment variable: file that the runner creates when its result stands; may be unset."""

PATIENCE = "SPEARMINT_PATIENCE"
"""Environment variable: seconds that the runner tries again while it cannot write; 0 if unset."""

AHEAD = "SPEARMINT_AHEAD"
"""Environment variable: directory of the tickets of trials that wait; only with a relay."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables: threads of numerical libraries."""

_LAST_STEP = 2**31 - 1


def report(step: int, value: float) -> None:
    """Report the objective at ``step`` (an epoch, say; 0 to 2**31 - 1) of the running trial.

    The values become the loss curves of ``spearmint report``. Outside of a trial nothing
    happens, so the same ``main`` runs by hand. A full disk is no error either.
    """
    path = os.environ.get(REPORTS_FILE)
    if not path:
        return
    line = f"{int(step)},{float(value)!r}\n"
    try:
        with Path(path).open("a", encoding="ascii") as file:
            file.write(line)
    except OSError:
        return


def region() -> str:
    """Return the region of the running trial; empty outside of one, or without regions."""
    return os.environ.get(REGION, "")


def read_reports(path: Path) -> dict[int, float]:
    """Return the values in ``path`` by step; torn lines and what is no number are left out."""
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
