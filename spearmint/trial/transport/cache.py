"""Data of experiments on a host: fetched once, checked at each use, and shared by a user's trials.

A name of data contains its size and SHA-256, which the submit side has calculated. So nothing in
the cache is believed: data that another process has damaged or replaced is fetched again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path

from spearmint.trial.transport.cache_folder import open_folder

MOST_BYTES = 32 << 30
"""Most bytes of a cache; it also leaves half of the free space of its file system."""

_NAME = re.compile(r"data-(\d{1,18})-([0-9a-f]{64})\.zip")
_PART = ".part"
_STEP_S = 0.5
_STALLED_S = 120.0  # a trial that fetches may be suspended: others then fetch for themselves

Fetch = Callable[[BufferedIOBase], None]
"""Writes data to an open file; raises OSError."""


class DataMissing(OSError):
    """Data could not be fetched, or arrived damaged."""


def data_name(path: Path) -> str:
    """Return the name of a file's content in a cache."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"data-{path.stat().st_size}-{digest}.zip"


@contextlib.contextmanager
def open_data(name: str, fetch: Fetch, here: Path) -> Iterator[Path]:
    """Provide the path of checked data, from the cache of this host if it has one.

    Args:
        name: As by :func:`data_name`, from the submit side.
        fetch: Called if the data is not in the cache.
        here: Directory for the data if there is no cache.

    Raises:
        DataMissing: It could not be fetched, or arrived damaged.
    """
    if not _NAME.fullmatch(name):
        raise DataMissing(f"wrong name of data: {name!r}")
    with contextlib.ExitStack() as stack:
        file = _cached(name, fetch, stack) or _fetched(name, fetch, here)
        stack.enter_context(file)
        yield Path(f"/proc/self/fd/{file.fileno()}")  # also valid when others delete the file


def _cached(name: str, fetch: Fetch, stack: contextlib.ExitStack) -> BufferedIOBase | None:
    """Return open data of the cache; None if there is no cache, or it has no room for it."""
    folder, reason = open_folder()
    if folder is None:
        sys.stderr.write(f"Data is fetched for this trial only: {reason}\n")
        return None
    stack.callback(os.close, folder)
    try:
        return Cache(folder).open(name, fetch)
    except OSError as error:
        sys.stderr.write(f"Data is fetched for this trial only: {error}\n")
        return None


def _fetched(name: str, fetch: Fetch, here: Path) -> BufferedIOBase:
    """Return open data that only this trial uses; it takes no space after its end."""
    path = here / name
    try:
        file = path.open("w+b")
        path.unlink()
        fetch(file)
    except OSError as error:
        raise DataMissing(f"cannot fetch the data of the experiment: {error}") from error
    if not _is_intact(file, name):
        file.close()
        raise DataMissing("the data of the experiment arrived damaged")
    return file


class Cache:
    """A directory with data, and ``NAME.part`` while it is fetched, locked by who fetches it.

    Args:
        folder: File descriptor of the directory; all names are relative to it.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder

    def open(self, name: str, fetch: Fetch) -> BufferedIOBase | None:
        """Return open data, fetched if it is missing or damaged; None without room for it.

        While another process fetches it, wait for that. Raises OSError.
        """
        state, waited, since = (-1, -1), (0, 0), 0.0
        while True:
            if (file := self._open_intact(name)) is not None:
                return file
            with self._locked(name + _PART) as part:
                if part is not None:
                    return self._fetch(name, fetch, part)
            state, waited = self._state(name + _PART), state
            if state != waited:
                since = time.monotonic()
            elif time.monotonic() - since > _STALLED_S:
                raise OSError("another trial has stopped fetching it")
            time.sleep(_STEP_S)

    def _fetch(self, name: str, fetch: Fetch, part: BufferedIOBase) -> BufferedIOBase | None:
        """Fetch data to its locked part; the data may have arrived since it was looked for."""
        began, size = time.monotonic(), int(name.split("-")[1])
        file = self._open_intact(name)
        try:
            if file is not None or not self._make_room(size, name + _PART):
                return file
            part.truncate(0)
            fetch(part)
            if not _is_intact(part, name):
                raise OSError("the data of the experiment arrived damaged")
            os.rename(name + _PART, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        finally:
            self._remove(name + _PART)
        seconds = time.monotonic() - began
        sys.stderr.write(f"Fetched {size / 1e6:.1f} MB of data for this host in {seconds:.1f} s.\n")
        return self._open(name)

    def _open_intact(self, name: str) -> BufferedIOBase | None:
        """Return open data that is as the submit side has it; delete it if it is not."""
        file = self._open(name)
        if file is None:
            return None
        if not _is_intact(file, name):
            file.close()
            self._remove(name)
            return None
        os.utime(file.fileno())  # the least recently used data is deleted first
        file.seek(0)
        return file

    def _open(self, name: str) -> BufferedIOBase | None:
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.fdopen(os.open(name, flags, dir_fd=self._folder), "rb")
        except FileNotFoundError:
            return None
        except OSError:
            self._remove(name)  # a link, or something else that this module does not write
            return None

    @contextlib.contextmanager
    def _locked(self, name: str) -> Iterator[BufferedIOBase | None]:
        """Create and lock a file; None if another process has locked or just renamed it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=self._folder), "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
                is_same = os.path.samestat(found, os.fstat(file.fileno()))
            except (BlockingIOError, FileNotFoundError):
                is_same = False
            yield file if is_same else None

    def _make_room(self, size: int, own: str) -> bool:
        """Delete what was used least recently; return whether ``size`` bytes are allowed."""
        found = {name: self._status(name) for name in self._names() if name != own}
        files = {name: status for name, status in found.items() if status is not None}
        used = sum(status.st_size for status in files.values())
        space = os.fstatvfs(self._folder)
        free = space.f_bavail * space.f_frsize
        limit = min(MOST_BYTES, (free + used) // 2)
        if size > limit:
            return False
        for name in sorted(files, key=lambda name: files[name].st_mtime_ns):
            is_left = name.endswith(_PART) and self._is_free(name)
            if is_left or (used + size > limit and not name.endswith(_PART)):
                self._remove(name)
                used -= files[name].st_size
        return used + size <= limit

    def _is_free(self, name: str) -> bool:
        """Return whether no process fetches to a part."""
        with self._locked(name) as part:
            return part is not None

    def _names(self) -> list[str]:
        return os.listdir(self._folder)  # noqa: PTH208 - by its descriptor

    def _status(self, name: str) -> os.stat_result | None:
        with contextlib.suppress(FileNotFoundError):
            return os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        return None

    def _state(self, name: str) -> tuple[int, int]:
        """Return size and time of a file, which its writer also renews while it waits."""
        status = self._status(name)
        return (-1, -1) if status is None else (status.st_size, status.st_mtime_ns)

    def _remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._folder)


def _is_intact(file: BufferedIOBase, name: str) -> bool:
    """Return whether an open file of this user has the size and content that its name says."""
    _, size, digest = name.removesuffix(".zip").split("-")
    file.flush()
    status = os.fstat(file.fileno())
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
    if not is_own or status.st_size != int(size):
        return False
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest() == digest
