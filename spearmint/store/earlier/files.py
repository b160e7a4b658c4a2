"""Open an SQLite file that another process or user can write, without writing.

SQLite creates files next to a file with a write-ahead log. It is copied if they are missing. What
another user wrote into the file cannot keep this process busy for ever: see ``_limit``.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path

from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from spearmint.errors import InputError
from spearmint.store.earlier.trials import TABLES

_TIMEOUT_S = 10.0
# Steps of SQLite's virtual machine in all queries: seconds. 100,000 trials need two millions.
_MOST_STEPS, _COUNTED = 500_000_000, 1_000_000
_LONGEST_ROW = 16 * 2**20  # bytes
_HEADER = b"SQLite format 3\0"
_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # also ends a journal that names another file


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
                _require_tables(connection)
                yield connection
        except OperationalError as error:
            if "interrupted" not in str(error.orig):
                raise
            raise _too_long(path) from None
        finally:
            engine.dispose()


def _too_long(path: Path) -> InputError:
    return InputError(
        f"reading {path} takes too long: it has too many rows, or they are not what they seem"
    )


def _require_tables(connection: Connection) -> None:
    """Raise InputError if a table that is read is a view, or a table that other code computes."""
    for row in connection.execute(text("SELECT name, type, sql FROM sqlite_master")):
        name, kind, sql = map(_as_sqlite, row)
        if name in TABLES and (kind != "table" or not _is_plain(sql)):
            raise InputError(f"its table {name} is not a plain table of Optuna")


def _as_sqlite(cell: object) -> str:
    """Return a cell of the schema as SQLite compares it: without case, to the first zero byte."""
    known = cell.decode(errors="replace") if isinstance(cell, bytes) else str(cell)
    return known.partition("\0")[0].lower()


def _is_plain(sql: str) -> bool:
    """Return whether the statement that creates a table has no computed columns or rows."""
    words = set(re.findall("[a-z]+", sql))
    return not words & {"virtual", "generated", "as"}


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
    _limit(connection)
    return connection


def _limit(connection: sqlite3.Connection) -> None:
    """Interrupt queries that need too many steps, and refuse rows that are too long."""
    counted = count(1)
    most = _MOST_STEPS // _COUNTED
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
    connection.set_progress_handler(lambda: int(next(counted) > most), _COUNTED)


def _can_read(uri: str) -> bool:
    with suppress(sqlite3.OperationalError), closing(_sqlite(uri)) as connection:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return True
    return False


def _copied(path: Path, folder: Path) -> Path:
    """Copy an SQLite file and its logs, the log last: it has what the file lacks."""
    target = folder / "copy.db"
    sources = {end: path.with_name(f"{path.name}{end}") for end in ("", "-journal", "-wal")}
    size = sum(source.stat().st_size for source in sources.values() if source.is_file())
    free = shutil.disk_usage(folder).free
    if size > free // 2:
        raise InputError(
            f"a copy of {path} of {size} bytes is needed, and {folder.parent} has {free} left",
            "Start a run of that search, or set TMPDIR to a directory with more space.",
        )
    for end, source in sources.items():
        if source.is_file():
            copy = target.with_name(f"{target.name}{end}")
            shutil.copyfile(source, copy)
            _require_harmless(copy, source)
    return target


def _require_harmless(copy: Path, source: Path) -> None:
    """Raise InputError if a rollback journal names a file of several databases.

    After the rollback, SQLite deletes the file of that name, whatever it is.
    """
    with copy.open("rb") as file:
        file.seek(max(0, copy.stat().st_size - len(_JOURNAL)))
        if file.read() == _JOURNAL:
            raise InputError(f"{source} names another file, which SQLite would delete")


def is_database(path: Path) -> bool:
    """Return whether ``path`` is a regular file, and one of SQLite."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_HEADER)) == _HEADER
