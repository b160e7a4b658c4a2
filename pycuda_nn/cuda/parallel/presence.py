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
_MOST = 256  # bytes of a file
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Presence:
    """Locks a file until this process ends, and looks at those of other hosts.

    The kernel releases the lock however the process ends. Locks also work on NFS; on a file system
    where other hosts do not see them, nobody is watched.
    """

    def __init__(self, own: Path) -> None:
        """Lock the file ``own``, which exists."""
        self._own = os.open(own, os.O_RDWR)
        self._where = _where(self._own)
        self._others: dict[int, int] = {}
        self._end = weakref.finalize(self, _close, self._own, self._others)
        with contextlib.suppress(OSError):
            fcntl.flock(self._own, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.pwrite(self._own, self._where, 0)

    def watch(self, others: Mapping[int, Path]) -> None:
        """Watch the files of other hosts.

        A file that is not locked now is of a host that has already ended, if that host used the
        same mount of the same kernel. Otherwise this host may just not see its lock.
        """
        for host, path in others.items():
            try:
                found = os.open(path, os.O_RDONLY)
            except OSError:
                continue
            text = _when_free(found, _MOST)
            if text is None or (self._where and text == self._where):
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


def _where(file: int) -> bytes:
    """Return the kernel and the mount as text; empty if unknown."""
    try:
        return f"{_BOOT.read_text(encoding='ascii').strip()} {os.fstat(file).st_dev}\n".encode()
    except (OSError, ValueError):
        return b""


def _when_free(file: int, most: int = len(_DONE)) -> bytes | None:
    """Return the first bytes if nobody has locked the file, None if somebody has or may have."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return None
    try:  # NFS reads from the server what was written before the lock
        return os.pread(file, most, 0)
    except OSError:
        return None
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
