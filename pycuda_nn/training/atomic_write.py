"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` beside ``path``, flush it to the disk, rename it, flush the folder.

    The name beside is always the same, so that what a kill leaves is overwritten by the next run.
    Raises OSError; an old ``path`` is then untouched, and what was written beside is gone: it
    would keep a full disk full.
    """
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
