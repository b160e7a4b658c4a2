"""A cache on disk for small results that are slow to compute: kernels and fastest algorithms.

Each entry is a file with a digest and the content. Entries are written atomically: jobs can write
concurrently on any file system, and the first one wins. A damaged entry counts as missing. If the
directory is not writable, nothing is cached.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST_BYTES = 32
_NO_FOLDER = (OSError, RuntimeError)  # RuntimeError: the user has no home directory


def folder() -> Path:
    """Return the directory: ``PYCUDA_NN_CACHE``, or ``pycuda_nn`` in the cache of the user."""
    given = os.environ.get("PYCUDA_NN_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base, "pycuda_nn")


def key(*parts: str) -> str:
    """Return the name of an entry that depends on all of ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """Return the entry, or None if it is missing or damaged."""
    try:
        held = (folder() / name).read_bytes()
    except _NO_FOLDER:
        return None
    content = held[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == held[:_DIGEST_BYTES] else None


def keep(name: str, content: bytes) -> bytes:
    """Write the entry if possible; return the entry of the first process that wrote it.

    Processes that time algorithms concurrently then all use the same algorithms.
    """
    try:
        folder().mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, beside = tempfile.mkstemp(dir=folder(), suffix=".new")
    except _NO_FOLDER:
        return content
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(hashlib.sha256(content).digest() + content)
        return _placed(Path(beside), name, content)
    except OSError:
        return content
    finally:
        Path(beside).unlink(missing_ok=True)


def _placed(beside: Path, name: str, content: bytes) -> bytes:
    """Rename the file unless a complete entry has the name; return the content of the entry."""
    try:
        (folder() / name).hardlink_to(beside)
    except FileExistsError:
        held = read(name)
        if held is not None:
            return held
        beside.replace(folder() / name)
    except OSError:  # the file system has no hard links
        beside.replace(folder() / name)
    return content
