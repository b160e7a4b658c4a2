"""The default storage: an SQLite file, tuned for many small transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from sqlalchemy.engine import make_url

_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p", "afs")


def sqlite_url(path: Path) -> str:
    """Return the storage URL of an SQLite file."""
    return f"sqlite:///{quote(str(path))}"


def file_of(url: str) -> Path | None:
    """Return the file of an SQLite URL; None for any other storage."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    return Path(parsed.database)


class TrialConnection(sqlite3.Connection):
    """A connection that commits to a write-ahead log, without waiting for the disk each time.

    A killed process loses nothing. A power cut may lose the last seconds but never corrupts,
    and a result that is lost so is stored again from the trial's folder. The log needs shared
    memory, so a file on a network file system keeps SQLite's slower defaults.
    """

    def __init__(self, database: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(database, *args, **kwargs)
        if not is_on_network(Path(database)):
            self.execute("PRAGMA journal_mode=WAL")
            self.execute("PRAGMA synchronous=NORMAL")


def is_on_network(path: Path) -> bool:
    """Tell whether ``path`` lies on a network file system."""
    parents = (path.absolute(), *path.absolute().parents)
    mounts = {part.mountpoint: part.fstype for part in psutil.disk_partitions(all=True)}
    found = next((mounts[str(parent)] for parent in parents if str(parent) in mounts), "")
    return found.startswith(_NETWORK)
