"""Notice that pending jobs can never start, without asking the queue all the time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from spearmint.drivers.queue import Obstacle, Queue
from spearmint.errors import DriverError

_FIRST_S = 3.0  # a job that can start does so before
_NEXT_S = (5.0, 60.0)  # shortest and longest pause between two checks
_PASSING_S = 40.0  # hosts that report again after a restart of the master need up to 32 s


class QueueObstacles:
    """Checks the oldest and the newest pending job, in longer and longer intervals.

    Attributes:
        found: Why no pending job can start; None if one can, or if it is not known yet.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.found: Obstacle | None = None
        self._pause_s, self._due = _NEXT_S[0], float("inf")
        self._since = 0.0
        self._told, self._woke = "", False

    def expect_start(self) -> None:
        """Check soon if a new job can start."""
        if self._due == float("inf"):
            self._due = time.monotonic() + _FIRST_S

    def wakes(self) -> bool:
        """Return whether a check is due; true once for each check."""
        wakes, self._woke = not self._woke and time.monotonic() >= self._due, True
        return wakes

    def look(self, pending: Sequence[str]) -> str:
        """Check the ``pending`` jobs, oldest first; return a message if there is a new reason."""
        self._woke = False
        if not pending:
            self.found, self._due, self._pause_s = None, float("inf"), _NEXT_S[0]
            return ""
        self.expect_start()
        if time.monotonic() < self._due:
            return ""
        before, self.found = self.found, self._ask(pending)
        self._pause_s = _NEXT_S[0] if self.found else min(2 * self._pause_s, _NEXT_S[1])
        self._due = time.monotonic() + self._pause_s
        if self.found is None:
            self._told = ""
            return ""
        if before is None:
            self._since = time.monotonic()
        return self._message(self.found)

    def _ask(self, pending: Sequence[str]) -> Obstacle | None:
        found = None
        for id in dict.fromkeys((pending[-1], pending[0])):
            found = None
            with contextlib.suppress(DriverError):  # without an answer, it may start
                found = self._queue.obstacle(id)
            if found is None:
                return None
        return found

    def _message(self, found: Obstacle) -> str:
        key = found.key or found.reason
        if key == self._told or (found.passes and time.monotonic() - self._since < _PASSING_S):
            return ""
        self._told = key
        return _text(found)

    @property
    def lasting(self) -> str:
        """The message about an obstacle that does not end by itself; empty for none."""
        return "" if self.found is None or self.found.passes else _text(self.found)


def _text(found: Obstacle) -> str:
    return f"Pending trials cannot start:\n{found.reason}" + (f"\n{found.fix}" if found.fix else "")
