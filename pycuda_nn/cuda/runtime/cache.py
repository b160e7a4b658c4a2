"""Small results that are dear to find again, on disk: compiled kernels, the fastest algorithms.

One file an entry: a digest, then the content. Files arrive whole under their name, so any number
of jobs may write at once, on any file system, and the first wins; a damaged one counts as absent,
and where nothing can be written nothing is kept.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

_DIGEST_BYTES = 32
_NO_FOLDER = (OSError, RuntimeError)  # the latter: a user without a home


def folder() -> Path:
    """Return where entries are: ``PYCUDA_NN_CACHE``, or ``pycuda_nn`` in the user's cache."""
    given = os.environ.get("PYCUDA_NN_CACHE")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base, "pycuda_nn")


def key(*parts: str) -> str:
    """Return a name for what depends on all of ``parts``."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read(name: str) -> bytes | None:
    """Return the entry, or None when it is absent or damaged."""
    try:
        held = (folder() / name).read_bytes()
    except _NO_FOLDER:
        return None
    content = held[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == held[:_DIGEST_BYTES] else None


def keep(name: str, content: bytes) -> bytes:
    """Write the entry, if that is possible and no other process was first; return what holds.

    Of several that time algorithms at once, all then go on with the same ones.
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
    """Give the file its name unless a whole entry has it; return the content of the entry."""
    try:
        (folder() / name).hardlink_to(beside)
    except FileExistsError:
        held = read(name)
        if held is not None:
            return held
        beside.replace(folder() / name)
    except OSError:  # a file system without links
        beside.replace(folder() / name)
    return content
