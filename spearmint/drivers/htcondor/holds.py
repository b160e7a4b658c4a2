"""What the codes of held jobs mean (HTCondor manual, "HoldReasonCode")."""

from __future__ import annotations

TIMES = (46, 47)
"""The job ran longer than it may."""
LIMITS = (26, 34)
"""The job exceeded a limit of the pool, or its memory or disk."""
# A user held it or its policy, it was submitted on hold, or waits for its input.
_LASTING = (1, 3, 15, 16)

REMOVED_HOLDS = f"JobStatus == 5 && !member(HoldReasonCode, {{{', '.join(map(str, _LASTING))}}})"
"""Expression that is true for a held job that would never continue."""


def is_removed(code: object) -> bool:
    """Return whether the schedd removes a held job, by :data:`REMOVED_HOLDS`."""
    return code not in _LASTING
