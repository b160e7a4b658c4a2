"""Files in pieces: the receiver names those that it wants, so few are in Redis at any time."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.store import Store

PIECE = 512 << 10
WINDOW = 8
"""Bytes of a piece, and pieces of one file in Redis at the same time."""
SMALL = 64 << 10
"""A file of at most this many bytes is sent with its announcement."""
MOST_BYTES = 1 << 40

_AGAIN_S = 2.0  # Redis may have lost the pieces
_DIGEST = re.compile(r"[0-9a-f]{64}")

Want = tuple[str, int, int]
"""Digest of a file, and the first piece that is wanted and the one after the last."""
Key = Callable[[str, int], str]
"""Returns the name of a piece in Redis by the digest and the number."""


def want_of(value: Any) -> Want | None:
    """Return what the other side wants; None if it wants nothing, or something invalid."""
    match value:
        case [str(digest), int(first), int(end)] if 0 <= first < end <= first + WINDOW:
            return (digest, first, end)
    return None


def is_digest(text: object) -> bool:
    """Return whether ``text`` is a SHA-256 in hexadecimal digits."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Outgoing:
    """Puts the pieces of a file that the other side wants."""

    def __init__(self, store: Store, key: Key, path: Path, digest: str) -> None:
        self._store, self._key, self.path, self.digest = store, key, path, digest
        self._last: Want | None = None
        self._put = 0.0

    def serve(self, want: Want | None) -> bool:
        """Put pieces; return whether there are new ones. Raises OSError."""
        now = time.monotonic()
        if want is None or want[0] != self.digest:
            return False
        if want == self._last and now - self._put < _AGAIN_S:
            return False
        pieces = {}
        with self.path.open("rb") as file:
            for number in range(want[1], want[2]):
                file.seek(number * PIECE)
                if data := file.read(PIECE):
                    pieces[self._key(self.digest, number)] = data
        self._store.put(pieces)
        self._last, self._put = want, now
        return True


class Incoming:
    """Takes the pieces of a file, in their order, and checks the whole.

    Args:
        store: Where the pieces are.
        key: How they are named.
        digest: SHA-256 of the file.
        size: Bytes of the file.
        target: Where to write it; an empty file.
    """

    def __init__(
        self, store: Store, key: Key, digest: str, size: int, target: BufferedIOBase
    ) -> None:
        self._store, self._key, self.digest = store, key, digest
        self._size, self._target = size, target
        self._next, self._sum = 0, hashlib.sha256()
        self.is_complete = False

    @property
    def want(self) -> Want:
        """What to want from the other side."""
        count = max(1, -(-self._size // PIECE))
        return (self.digest, self._next, min(self._next + WINDOW, count))

    def take(self) -> bool:
        """Take the pieces that are there; return whether there were any. Raises OSError.

        A file that is complete but damaged is wanted again from its start.
        """
        if self.is_complete:
            return False
        if not self._size:
            self._check()
            return True
        _, first, end = self.want
        keys = [self._key(self.digest, number) for number in range(first, end)]
        taken = []
        for key, data in zip(keys, self._store.read(keys), strict=True):
            if data is None:
                break
            taken.append(key)
            self._target.write(data)
            self._sum.update(data)
        self._next += len(taken)
        if self._next * PIECE >= self._size:
            self._check()
        self._store.drop(taken)
        return bool(taken)

    def _check(self) -> None:
        if self._target.tell() == self._size and self._sum.hexdigest() == self.digest:
            self.is_complete = True
            return
        self._target.seek(0)
        self._target.truncate()
        self._next, self._sum = 0, hashlib.sha256()
