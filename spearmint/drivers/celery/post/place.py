"""Directories of this host for jobs whose experiment is elsewhere, below the worker's root."""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.names import job_of
from spearmint.layout import read_json, write_json
from spearmint.trial.transport.mailroom import OUTBOX, START
from spearmint.trial.transport.parcel import END

NAME = ".spearmint-worker"
"""Directory below the root of a worker."""

_MOST_OUTPUT = 1 << 20
_NEW_S = 3600.0


@dataclass(frozen=True, slots=True)
class Place:
    """The directory of one start of a job."""

    path: Path

    @property
    def start(self) -> str:
        """Name of the start."""
        return self.path.name

    @property
    def record(self) -> Path:
        """What the supervisor reads and writes: lease, cancel and end."""
        return self.path / "record"

    @property
    def box(self) -> Path:
        """Working directory of the job."""
        # A name of its own: the trial finds by it whether a directory is the job's.
        return self.path / f"box-{self.start[-16:]}"

    @property
    def spool(self) -> Path:
        """What the job sends while it runs."""
        return self.path / "spool"

    @property
    def output(self) -> Path:
        """File to which the job's output is appended."""
        return self.box / "output.txt"

    @property
    def lock(self) -> Path:
        """Lock of the processes that run the job or send what it left."""
        return self.path / "lock"

    def create(self, search: str) -> int:
        """Create the directory for a job of a search; return the file descriptor of its lock."""
        new = Place(self.path.with_name(f".{self.start}"))
        new.path.mkdir(mode=0o700)
        # The box has its name from the start.
        for path in (new.record, new.path / self.box.name, new.path / self.box.name / OUTBOX):
            path.mkdir(mode=0o700)
        (new.record / "cancel").touch(mode=0o600)
        write_json(new.path / "about.json", {"search": search})
        lock = new.take_lock()
        if lock is None:
            raise BlockingIOError(f"another process has {new.path}")
        new.path.rename(self.path)
        return lock

    def search(self) -> str:
        """Return the search that the job is of; empty if it is unknown."""
        found = read_json(self.path / "about.json")
        return str(found.get("search", "")) if isinstance(found, dict) else ""

    def left_for_s(self) -> float:
        """Return the seconds since the job ended, however long it ran. Raises OSError."""
        return time.time() - (self.record / "end").stat().st_mtime

    def take_lock(self) -> int | None:
        """Lock the directory; return the file descriptor, or None if another process has it."""
        fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return fd

    def end(self) -> dict[str, Any] | None:
        """Return how the job ended; None while it runs."""
        found = read_json(self.record / "end")
        return found if isinstance(found, dict) else None

    def parcels(self) -> list[Path]:
        """Return what is to be sent, in its order."""
        waiting = sorted(self.spool.glob(f"*{END}"))
        if self.end() is None:
            return waiting
        waiting += sorted((self.box / OUTBOX).glob(f"*{END}"))
        if not waiting and not self.spool.exists():
            self._keep_first_output()
        return [*waiting, *self.spool.glob(START)]

    def _keep_first_output(self) -> None:
        """Send what a job printed that ended before its trial started."""
        self.spool.mkdir(mode=0o700)
        if self.output.exists() and self.output.stat().st_size:
            with self.output.open("rb") as file:
                (self.spool / f".{START}").write_bytes(file.read(_MOST_OUTPUT))
            (self.spool / f".{START}").rename(self.spool / START)

    def stop(self) -> None:
        """Make the supervisor kill the trial: its job is over."""
        if self.record.exists():
            self.record.rename(self.path / "over")

    def remove(self) -> None:
        """Delete the directory."""
        shutil.rmtree(self.path, ignore_errors=True)


class Places:
    """The places and the cache of a worker. Only its user can open them. Raises OSError."""

    def __init__(self, root: Path) -> None:
        if root.stat().st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH:
            raise PermissionError(f"every user can replace what is in {root}")
        self._base = root / NAME
        self.cache, self._jobs = self._base / "cache", self._base / "jobs"
        for path in (self._base, self.cache, self._jobs):
            path.mkdir(mode=0o700, exist_ok=True)
            found = path.lstat()
            is_own = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if not is_own or found.st_mode & 0o077:
                raise PermissionError(f"{path} is not a directory that only this user can open")

    def new(self, start: str) -> Place:
        """Return the place of a start, which is not created yet."""
        return Place(self._jobs / start)

    def all(self) -> Iterator[Place]:
        """Return the places on this host, also those of other workers, in any order."""
        paths = list(self._jobs.iterdir())
        random.shuffle(paths)  # so that none waits for ever if there are many
        for path in paths:
            if job_of(path.name) is not None:
                yield Place(path)
            elif time.time() - path.stat().st_mtime > _NEW_S:
                shutil.rmtree(path, ignore_errors=True)  # its worker was killed
