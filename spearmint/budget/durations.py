"""How long trials take, learned from those that ended; no I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

_RECENT = 200
_FEW = 5
_SPREAD = 1.5  # of the mean, while only the mean is known
_QUANTILE = 0.95


@dataclass(slots=True)
class Durations:
    """Seconds of ended trials.

    Attributes:
        known: Mean of the trials of earlier runs; None without any.
    """

    known: float | None = None
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def add(self, seconds: float) -> None:
        """Add a trial that ended."""
        if seconds > 0:
            self._recent.append(seconds)

    def longest(self) -> float | None:
        """Return the seconds that 95 % of the trials do not exceed; None if none has ended."""
        found = sorted(self._recent)
        if len(found) >= _FEW:
            return found[min(int(len(found) * _QUANTILE), len(found) - 1)]
        few = [*found, *([self.known] if self.known else [])]
        return max(few) * _SPREAD if few else None
