"""How a trial on another host signals that its result is written: an empty file in one directory.

One directory serves all trials: listing it makes a network file system refresh, and costs the
same for one trial as for a thousand.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


class DoneMarkers:
    """The directory of done markers, each named by the token of its trial."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._done: set[str] = set()

    def path(self, token: str) -> Path:
        """Return the file that the runner of ``token`` creates when its result is written."""
        return self._directory / token

    def reset(self, token: str) -> None:
        """Forget an earlier marker of ``token``, before its job is submitted."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._done.discard(token)
        self.path(token).unlink(missing_ok=True)

    def is_done(self, token: str) -> bool:
        """Tell whether an earlier :meth:`refresh` found the marker."""
        return token in self._done

    def refresh(self) -> bool:
        """List the directory once; return whether there is a new marker."""
        new = set()
        with contextlib.suppress(FileNotFoundError):
            new = set(os.listdir(self._directory)) - self._done  # noqa: PTH208 - ten times a second
        for token in new:
            with contextlib.suppress(OSError):
                self.path(token).unlink()
        self._done |= new
        return bool(new)

    def wait(self, timeout_s: float, *, step_s: float) -> None:
        """Return when there is a new marker, after ``timeout_s`` seconds at most."""
        deadline = time.monotonic() + timeout_s
        while not self.refresh():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(step_s, left))
