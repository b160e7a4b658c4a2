"""What the codes of held jobs mean (HTCondor manual, "HoldReasonCode")."""

from __future__ import annotations

TIMES = (46, 47)
"""The job ran longer than it may."""
LIMITS = (26, 34)
"""The job exceeded a limit of the pool, or its memory or disk."""
# A user held it or its policy, it was submitted on hold, or waits for its input.
_LASTING = (1, 3, 15, 16)

UNFIT = 97
"""Exit status of a job on a host without a Python for it, and subcode of the hold that follows."""

REMOVED_HOLDS = (
    f"JobStatus == 5 && (!member(HoldReasonCode, {{{', '.join(map(str, _LASTING))}}})"
    f" || HoldReasonSubCode =?= {UNFIT})"
)
"""Expression that is true for a held job that would never continue."""


def is_removed(code: object, subcode: object = None) -> bool:
    """Return whether the schedd removes a held job, by :data:`REMOVED_HOLDS`."""
    return code not in _LASTING or subcode == UNFIT
