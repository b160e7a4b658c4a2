"""Locks in the meeting folder, by which each host sees that the others still run."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import weakref
from collections.abc import Mapping
from pathlib import Path

_LOG = logging.getLogger("pycuda_nn")
_DONE = b"done"


class Presence:
    """Locks a file until this process ends, and looks at those of other hosts.

    The kernel releases the lock however the process ends. Locks also work on NFS; on a file system
    where other hosts do not see them, nobody is watched.
    """

    def __init__(self, own: Path) -> None:
        """Lock the file ``own``, which exists."""
        self._own = os.open(own, os.O_RDWR)
        self._others: dict[int, int] = {}
        self._end = weakref.finalize(self, _close, self._own, self._others)
        with contextlib.suppress(OSError):
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def watch(self, others: Mapping[int, Path]) -> None:
        """Watch the files of other hosts, all of which must be locked now."""
        for host, path in others.items():
            try:
                found = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            if _when_free(found) is None:
                self._others[host] = found
                continue
            os.close(found)
            _LOG.info("host %d is not watched: %s has no locks of other hosts", host, path.parent)

    def lost(self) -> int | None:
        """Return a host whose process has ended before its training, if there is one."""
        for host, file in list(self._others.items()):
            text = _when_free(file)
            if text == _DONE:
                os.close(self._others.pop(host))
            elif text is not None:
                return host
        return None

    def leave(self, *, done: bool) -> None:
        """Release all; without ``done``, this host is lost for the others."""
        if done and self._end.alive:
            with contextlib.suppress(OSError):
                os.pwrite(self._own, _DONE, 0)
        self._end()


def _close(own: int, others: dict[int, int]) -> None:
    for file in (own, *others.values()):
        os.close(file)
    others.clear()


def _when_free(file: int) -> bytes | None:
    """Return the contents if nobody has locked the file, None otherwise or if this is unknown."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return None
    try:  # NFS reads from the server what was written before the lock
        return os.pread(file, len(_DONE), 0)
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
