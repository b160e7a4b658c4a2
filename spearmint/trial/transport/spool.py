"""Leave files for another process of this host, which sends them to the submit side."""

from __future__ import annotations

import os
from pathlib import Path

from spearmint.trial.environment import TRANSPORT_SPOOL
from spearmint.trial.transport.parcel import END


class Spool:
    """A directory with at most one parcel at a time, so that a slow link does not fill the disk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def of_job(cls) -> Spool | None:
        """Return the spool of this job; None if it has none."""
        path = os.environ.pop(TRANSPORT_SPOOL, "")
        return cls(Path(path)) if path else None

    def send(self, path: Path, name: str) -> None:
        """Leave a file under ``name``. Raises OSError, also while an earlier one is there."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        if next(self._directory.glob(f"*{END}"), None) is not None:
            raise BlockingIOError("the last parcel was not sent yet")
        os.link(path, self._directory / name)

    def touch(self, path: str) -> None:
        """Do nothing: the end of the job is announced when all was sent."""

    def close(self) -> None:
        """Do nothing: no call waits."""
