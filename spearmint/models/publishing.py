"""Publish folders by rename, so that readers see a whole one or none."""

from __future__ import annotations

import os
from pathlib import Path


def complete_folder(part: Path, target: Path) -> None:
    """Write all files of ``part`` to the disk, then rename it to ``target``."""
    for path in (*part.rglob("*"), part):
        if not path.is_symlink():
            sync(path)
    part.rename(target)
    sync(target.parent)


def switch_link(link: Path, name: str) -> None:
    """Make ``link`` a symbolic link to ``name`` next to it, by rename.

    Readers see the old target or the new one, also after a kill or a power failure.
    """
    new = link.with_name(f".{link.name}.link")
    new.unlink(missing_ok=True)
    new.symlink_to(name)
    new.replace(link)
    sync(link.parent)


def sync(path: Path) -> None:
    """Wait until a file or a directory is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
