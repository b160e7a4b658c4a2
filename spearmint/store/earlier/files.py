"""Open an SQLite file that another process or user can write, without writing.

SQLite creates files next to a file with a write-ahead log. It is copied if they are missing.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from spearmint.errors import InputError

_TIMEOUT_S = 10.0
_HEADER = b"SQLite format 3\0"


@contextmanager
def reading_file(path: Path) -> Iterator[Connection]:
    """Yield a connection that cannot write to an SQLite file, nor create one next to it."""
    if not is_database(path):
        raise InputError(f"{path} is not an SQLite file")
    with tempfile.TemporaryDirectory(prefix="spearmint-learn-") as folder:
        uri = _uri(path)
        if uri is None or not _can_read(uri):
            uri = f"{_copied(path, Path(folder)).as_uri()}?mode=rw"
        engine = create_engine("sqlite://", creator=lambda: _sqlite(str(uri)), poolclass=NullPool)
        try:
            with engine.connect() as connection:
                yield connection
        finally:
            engine.dispose()


def _uri(path: Path) -> str | None:
    """Return the URI to read an SQLite file by; None if SQLite would create a file next to it."""
    others = [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")]
    log, shared = others[:2]
    with path.open("rb") as file:
        uses_log = file.read(20)[18:] == b"\2\2"
    for other in others:  # SQLite would wait for ever for the writer of a pipe
        if other.exists() and not other.is_file():
            raise InputError(f"{other} is not a file")
    if uses_log and log.exists() and (shared.is_symlink() or not shared.exists()):
        return None
    how = "immutable=1" if uses_log and not log.exists() else "mode=ro"
    return f"{path.absolute().as_uri()}?{how}"


def _sqlite(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, timeout=_TIMEOUT_S, check_same_thread=False)
    connection.execute("PRAGMA query_only=1")
    connection.execute("PRAGMA trusted_schema=0")
    return connection


def _can_read(uri: str) -> bool:
    with suppress(sqlite3.OperationalError), closing(_sqlite(uri)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return True
    return False


def _copied(path: Path, folder: Path) -> Path:
    """Copy an SQLite file and its logs, the log last: it has what the file lacks."""
    target = folder / "copy.db"
    for end in ("", "-journal", "-wal"):
        source = path.with_name(f"{path.name}{end}")
        if source.is_file():
            shutil.copyfile(source, target.with_name(f"{target.name}{end}"))
    return target


def is_database(path: Path) -> bool:
    """Return whether ``path`` is a regular file, and one of SQLite."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER
