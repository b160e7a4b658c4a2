"""Done markers: empty files by which trials on other hosts signal that their result is written.

All markers are in one directory. Listing it makes a network file system refresh, and costs the same
for one trial as for a thousand.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection
from pathlib import Path


class DoneMarkers:
    """The directory of done markers. The name of a marker is the token of its trial."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._done: set[str] = set()

    def path(self, token: str) -> Path:
        """Return the file that the runner creates when the result of ``token`` is written."""
        return self._directory / token

    def reset(self, token: str) -> None:
        """Delete an earlier marker of ``token``, before its job is submitted."""
        self._directory.mkdir(parents=True, exist_ok=True)
        self._done.discard(token)
        self.path(token).unlink(missing_ok=True)

    def keep(self, tokens: Collection[str]) -> None:
        """Delete the markers of all trials except ``tokens``."""
        with contextlib.suppress(OSError):
            for path in self._directory.iterdir():
                if path.name not in tokens:
                    path.unlink(missing_ok=True)

    def is_done(self, token: str) -> bool:
        """Return whether an earlier :meth:`refresh` found the marker."""
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
        """Return when there is a new marker, or after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while not self.refresh():
            left = deadline - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(step_s, left))
