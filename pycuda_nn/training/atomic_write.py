"""Replace a file atomically."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes | memoryview) -> None:
    """Write ``content`` to a temporary file next to ``path`` and rename it; both are flushed.

    The temporary file always has the same name: the next run overwrites the file that a killed
    run leaves.

    Raises:
        OSError: The write failed. ``path`` is unchanged, and the temporary file is removed: it
            would keep a full disk full.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
