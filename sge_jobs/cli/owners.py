"""Who can change the programs that root runs on every host."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Callable
from pathlib import Path

from sge_jobs.errors import InputError


def others_than_root(folder: Path) -> list[str]:
    """Return the users and groups that can change the programs in ``folder`` that root runs.

    Raises:
        InputError: Every user can.
    """
    package = folder.absolute().parent
    files = [*package.glob("*.py"), *package.glob("__pycache__/*"), *folder.rglob("*")]
    above = {*folder.absolute().parents, *folder.resolve().parents, folder}
    found = set()
    for path in (*sorted(above), package / "__pycache__", *files):
        if not path.exists():
            continue
        status = path.stat()
        sticky = (
            path.is_dir() and status.st_mode & stat.S_ISVTX
        )  # only owners can replace its files
        if status.st_mode & stat.S_IWOTH and not sticky:
            raise InputError(
                f"{path}: every user can change it, and root runs it on every host",
                f"Run: chmod o-w {shlex.quote(str(path))}    Then check that it is not changed.",
            )
        if status.st_uid:
            found.add(_name(path.owner, status.st_uid))
        if status.st_mode & stat.S_IWGRP and status.st_gid and not sticky:
            found.add(f"group {_name(path.group, status.st_gid)}")
    return sorted(found)


def _name(ask: Callable[[], str], number: int) -> str:
    try:
        return ask()
    except KeyError:
        return str(number)
