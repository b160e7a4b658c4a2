"""The jobs of a search, as folders that controller and workers share.

The broker only says which folder to run. What happens to a job is decided here, by operations that
are atomic on network file systems too: a link claims a job, and a rename of its folder ends it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spearmint.layout import read_json, write_json

_KEPT_S = 86400.0  # how long the ends of jobs can be looked up


@dataclass(frozen=True, slots=True)
class Record:
    """A job that has not ended.

    Attributes:
        claim: Who runs the job: ``host``, ``pid``, ``gpu``, ``since``. None while it waits.
        lease: The counter that the worker's host increases; empty before its first number.
        end: How the job ended; None while it runs.
    """

    id: str
    claim: Mapping[str, Any] | None
    lease: str
    end: Mapping[str, Any] | None


class Records:
    """The jobs of one experiment, in ``.spearmint/celery`` of its directory."""

    def __init__(self, experiment: Path) -> None:
        self.base = experiment / ".spearmint" / "celery"
        self._jobs, self._ended = self.base / "jobs", self.base / "ended"

    def folder(self, id: str) -> Path:
        """Return the folder of a job that has not ended."""
        return self._jobs / id

    def create(self, token: str, job: Mapping[str, Any]) -> str:
        """Write a new job and return its id."""
        self._make_directories()
        id = f"{token}.{secrets.token_hex(6)}"
        new = self.base / f"new.{id}"
        new.mkdir(mode=0o700)
        write_json(new / "job.json", job)
        (new / "cancel").touch(mode=0o600)
        new.rename(self.folder(id))
        return id

    def search(self) -> str:
        """Return the random name of this search; empty if :meth:`name_search` was not called."""
        with contextlib.suppress(FileNotFoundError):
            return (self.base / "search").read_text()
        return ""

    def name_search(self, name: str) -> str:
        """Name this search if it has no name yet; return its name. Raises OSError."""
        self._make_directories()
        part = self.base / f"new.{secrets.token_hex(6)}"
        part.write_text(name)
        try:
            os.link(part, self.base / "search")
        except FileExistsError:
            pass
        finally:
            part.unlink()
        return self.search()

    def _make_directories(self) -> None:
        for directory in (self.base, self._jobs, self._ended):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)

    def all(self) -> list[Record]:
        """Return the jobs that have not ended, the oldest first. Raises OSError."""
        try:
            ids = os.listdir(self._jobs)  # noqa: PTH208 - makes a network file system refresh
        except FileNotFoundError:
            return []
        found = [record for id in ids if (record := self._read(id)) is not None]
        return sorted(found, key=lambda record: record.id)

    def _read(self, id: str) -> Record | None:
        folder = self.folder(id)
        try:
            names = set(os.listdir(folder))  # noqa: PTH208 - as above
        except (FileNotFoundError, NotADirectoryError):
            return None
        claim = (read_json(folder / "claim") or {}) if "claim" in names else None
        lease = ""
        with contextlib.suppress(FileNotFoundError):
            lease = (folder / "lease").read_text() if "lease" in names else ""
        end = read_json(folder / "end") if "end" in names else None
        return Record(id, claim, lease, end)

    def claim(self, id: str, who: Mapping[str, Any]) -> bool:
        """Claim a waiting job; return False if it was claimed before, or has ended."""
        folder = self.folder(id)
        part = folder / f"claim.{secrets.token_hex(6)}"
        try:
            write_json(part, who)
            os.link(part, folder / "claim")
        except FileExistsError:
            # A server that repeated the request reports its own link.
            return bool(part.stat().st_nlink > 1)
        except (FileNotFoundError, NotADirectoryError):
            return False
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
        return True

    def job(self, id: str) -> Mapping[str, Any] | None:
        """Return what :meth:`create` wrote; None if the job has ended."""
        with contextlib.suppress(NotADirectoryError):
            return read_json(self.folder(id) / "job.json")
        return None

    def ask_to_stop(self, id: str) -> None:
        """Ask the host that runs a job to end it."""
        with contextlib.suppress(FileNotFoundError):
            (self.folder(id) / "cancel").write_text("cancel\n")

    def close(self, id: str, end: Mapping[str, Any]) -> None:
        """End a job: its folder moves, so that no worker can claim it or renew its lease."""
        folder = self.folder(id)
        with contextlib.suppress(FileNotFoundError):
            if not (folder / "end").exists():
                write_json(folder / "end", end)
        with contextlib.suppress(FileNotFoundError):
            folder.rename(self._ended / id)

    def end_of(self, id: str) -> Mapping[str, Any] | None:
        """Return how a job ended; None if unknown."""
        return read_json(self._ended / id / "end")

    def forget_old(self) -> None:
        """Delete what is known about jobs that ended more than a day ago."""
        with contextlib.suppress(OSError):
            for path in [*self._ended.iterdir(), *self.base.glob("new.*")]:
                if time.time() - path.stat().st_mtime > _KEPT_S:
                    shutil.rmtree(path, ignore_errors=True)


def wrong_owner(paths: Sequence[Path]) -> str:
    """Return why a path is not only this user's own, or an empty string."""
    for path in paths:
        found = path.lstat()
        if found.st_uid != os.geteuid():
            return f"{path} belongs to another user"
        if path.is_symlink():
            return f"{path} is a symbolic link"
        if found.st_mode & 0o002:
            return f"every user can write {path}"
    return ""
