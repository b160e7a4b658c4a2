"""Read the ads of HTCondor's job and machine, which the starter writes next to the job."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

JOB, MACHINE = "_CONDOR_JOB_AD", "_CONDOR_MACHINE_AD"
"""Environment variables with the files."""


def ad_number(variable: str, attribute: str) -> int | None:
    """Return a number of an ad; None if unknown."""
    found = _value(variable, attribute, r"(\d+)")
    return None if found is None else int(found)


def job_text(attribute: str) -> str:
    """Return a text of the job's ad; empty if unknown."""
    return _value(JOB, attribute, r'"([^"\\]*)"') or ""


def _value(variable: str, attribute: str, pattern: str) -> str | None:
    with contextlib.suppress(OSError):
        text = Path(os.environ.get(variable, "")).read_text(errors="replace")
        found = re.search(rf"^{attribute} *= *{pattern}\s*$", text, re.MULTILINE | re.IGNORECASE)
        return found[1] if found else None
    return None
