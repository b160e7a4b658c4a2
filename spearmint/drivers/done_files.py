"""How a trial on another host tells that its result stands: an empty file in one directory.

One directory is read for all trials: reading it makes a network file system look again, and costs
the same for one trial and for a thousand.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


class Bells:
    """The directory of bells; each has the name of its trial's job."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rung: set[str] = set()

    def file(self, token: str) -> Path:
        """Return what the runner of ``token`` creates when its result stands."""
        return self._directory / token

    def set_up(self, token: str) -> None:
        """Forget an earlier ring of ``token``, before its job is submitted."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._rung.discard(token)
        self.file(token).unlink(missing_ok=True)

    def has_rung(self, token: str) -> bool:
        """Tell whether it was seen by an earlier :meth:`listen`."""
        return token in self._rung

    def listen(self) -> bool:
        """Look once; return whether any has rung since."""
        new = set()
        with contextlib.suppress(FileNotFoundError):
            new = set(os.listdir(self._directory)) - self._rung  # noqa: PTH208 - ten times a second
        for token in new:
            with contextlib.suppress(OSError):
                self.file(token).unlink()
        self._rung |= new
        return bool(new)

    def wait(self, timeout_s: float, *, step_s: float) -> None:
        """Return when one rings, after ``timeout_s`` at most."""
        deadline = time.monotonic() + timeout_s
        while not self.listen():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(step_s, left))
