"""The directory of the models of one search or region: versions, and a link to the current one."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spearmint.errors import SpearmintError
from spearmint.layout import read_json, write_json
from spearmint.models.publishing import switch_link

CURRENT = "current"
_PROMOTED, _ROLLED_BACK = "promoted.json", "rolled_back.json"


@dataclass(frozen=True, slots=True)
class Version:
    """A model that was trained by a final job; its folder never changes but for marks."""

    path: Path

    @property
    def number(self) -> int:
        """Number from 1."""
        return int(self.path.name)

    def metrics(self) -> dict[str, Any]:
        """Return metrics.json. Raises SpearmintError if it is damaged."""
        found = read_json(self.path / "metrics.json")
        if found is None or not isinstance(found.get("value"), int | float):
            raise SpearmintError(
                f"{self.path / 'metrics.json'} is missing or damaged", "Restore it, or train again."
            )
        return found

    @property
    def value(self) -> float:
        """Value of the test metric."""
        return float(self.metrics()["value"])

    @property
    def standard_error(self) -> float:
        """Standard error of the test metric; 0 if it is unknown."""
        return float(self.metrics().get("standard_error") or 0.0)

    @property
    def turn(self) -> int:
        """Number of the promotion that made it current last, from 1; 0 if it never was."""
        return int((read_json(self.path / _PROMOTED) or {}).get("turn", 0))

    @property
    def is_rolled_back(self) -> bool:
        """Whether a rollback left it; it is not promoted any more, unless a user names it."""
        return (self.path / _ROLLED_BACK).exists()


class ModelStore:
    """The versions in a directory such as ``models/us``, and the link ``current``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: int) -> Path:
        """Return the folder of a version, which does not have to exist."""
        return self.folder / f"{number:08d}"

    def versions(self) -> list[Version]:
        """Return all complete versions, the oldest first."""
        found = [path for path in self.folder.glob("[0-9]*") if path.name.isdecimal()]
        return [Version(path) for path in sorted(found)]

    def version(self, number: int) -> Version:
        """Return a version. Raises SpearmintError if it does not exist."""
        if not self.path(number).is_dir():
            raise SpearmintError(f"no version {number} in {self.folder}")
        return Version(self.path(number))

    def current(self) -> Version | None:
        """Return the current version; None before the first promotion."""
        link = self.folder / CURRENT
        if not link.is_symlink():
            if link.exists():
                raise SpearmintError(f"{link} is not a link to a version", "Move it away.")
            return None
        return self.version(int(str(link.readlink())))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let one process at a time change which version is current."""
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def make_current(self, version: Version) -> None:
        """Switch ``current`` by rename; the caller holds the lock."""
        turn = 1 + max(other.turn for other in self.versions())
        write_json(version.path / _PROMOTED, {"at": time.time(), "turn": turn}, durable=True)
        (version.path / _ROLLED_BACK).unlink(missing_ok=True)
        switch_link(self.folder / CURRENT, version.path.name)

    def roll_back(self) -> tuple[Version, Version]:
        """Make the version current that was current before; return the old and the new one.

        A second call after a kill ends what the first one began.

        Raises:
            SpearmintError: No earlier version was promoted.
        """
        with self.lock():
            current = self.current()
            last = 0 if current is None else current.turn
            earlier = [v for v in self.versions() if 0 < v.turn < last and not v.is_rolled_back]
            if current is None or not earlier:
                raise SpearmintError(
                    f"no earlier promoted version in {self.folder}",
                    "Only a version that was current before can become so again.",
                )
            write_json(current.path / _ROLLED_BACK, {"at": time.time()}, durable=True)
            before = max(earlier, key=lambda version: version.turn)
            switch_link(self.folder / CURRENT, before.path.name)
            return current, before
