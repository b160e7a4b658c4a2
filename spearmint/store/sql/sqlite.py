"""The default storage: an SQLite file, tuned for many small transactions."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy.engine import make_url

from spearmint.errors import InputError
from spearmint.store.mounts import is_on_network

# Bytes 18 and 19 of a file with a write-ahead log (sqlite.org/fileformat2.html).
_WITH_LOG = b"\2\2"


def sqlite_url(path: Path) -> str:
    """Return the storage URL of an SQLite file.

    Raises:
        InputError: Its name is not UTF-8, or has letters that the locale lacks.
    """
    try:
        return f"sqlite:///{quote(str(path))}"
    except UnicodeEncodeError:
        raise InputError(
            f"the path {str(path.parent)!r} cannot be read as UTF-8",
            "Use a locale with UTF-8 (export LC_ALL=C.UTF-8), or rename the directory.",
        ) from None


def file_of(url: str) -> Path | None:
    """Return the file of an SQLite URL; None for any other storage."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    return Path(parsed.database)


class TrialConnection(sqlite3.Connection):
    """A connection that commits to a write-ahead log without waiting for the disk.

    A killed process loses nothing. A power failure can lose the last seconds, but does not corrupt
    the file, and the next run stores lost results from the folders of their trials. The log
    requires shared memory, so a file on a network file system keeps the slower defaults of SQLite.
    A read-only file is opened for reading.
    """

    def __init__(self, database: str, *args: Any, **kwargs: Any) -> None:
        try:
            self._open(Path(database), *args, **kwargs)
        except sqlite3.Error as error:
            raise type(error)(f"{database}: {error}") from error

    def _open(self, path: Path, *args: Any, **kwargs: Any) -> None:
        if is_read_only(path):
            super().__init__(_reading_uri(path), *args, **{**kwargs, "uri": True})
            return
        super().__init__(str(path), *args, **kwargs)
        if is_on_network(path):
            self.execute("PRAGMA schema_version")  # fails if it is not a database
        else:
            self.execute("PRAGMA journal_mode=WAL")
            self.execute("PRAGMA synchronous=NORMAL")


def is_read_only(path: Path) -> bool:
    """Return whether ``path`` exists, and it or its directory is not writable."""
    return path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))


def _reading_uri(path: Path) -> str:
    """Return the URI of a read-only file.

    If the file uses a write-ahead log and the log does not exist, nobody writes the file, and
    SQLite must not try to create the log. Other files are read under the locks of SQLite.
    """
    log = path.with_name(f"{path.name}-wal")
    with path.open("rb") as file:
        has_log = file.read(20)[18:] == _WITH_LOG
    how = "immutable=1" if has_log and not log.exists() else "mode=ro"
    return f"{path.absolute().as_uri()}?{how}"
