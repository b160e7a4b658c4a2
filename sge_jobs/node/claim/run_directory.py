"""The directory below /run in which only root can create files.

The first root program after a boot creates it and mounts a small tmpfs on it, so that it has space
however full /run is. Other programs never see it half made.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from sge_jobs.node.queries import QueryFailed, ask

_SIZE = "size=4m,nr_inodes=4k,mode=0755,nosuid,nodev,noexec"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_WAIT_S = 5.0


class LockError(Exception):
    """The directory or a file of a GPU cannot be used."""


def open_private(directory: str) -> int:
    """Return a descriptor of ``directory``, which is created together with its parent.

    Raises:
        LockError: It cannot be created, or users can write it or its parent.
    """
    parent = os.path.dirname(directory)
    try:
        try:
            os.close(_opened(parent))
            return _opened(directory)
        except FileNotFoundError:
            _prepare(parent, directory)
            return _opened(directory)
    except OSError as error:
        raise LockError(f"{error.filename or directory}: {error.strerror}") from error


def _opened(path: str) -> int:
    descriptor = os.open(path, _DIRECTORY)
    status = os.fstat(descriptor)
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        os.close(descriptor)
        raise LockError(
            f"{path}: owner {status.st_uid}, mode {stat.S_IMODE(status.st_mode):o}: expected a"
            " directory that only root can write"
        )
    return descriptor


def _prepare(parent: str, directory: str) -> None:
    _make(parent)
    descriptor = _opened(parent)
    try:
        _wait_for(descriptor)
        if not os.path.ismount(parent) and _is_at_home(parent):
            _mount(parent)
        os.chmod(parent, 0o755)  # noqa: S103 (starters and users read the list of GPUs)
        _make(directory)
    finally:
        os.close(descriptor)


def _make(path: str) -> None:
    try:  # noqa: SIM105 (the import of contextlib takes 4 ms)
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def _wait_for(descriptor: int) -> None:
    # A directory that an older version made can be locked by a user: do not wait for ever.
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return


def _is_at_home(parent: str) -> bool:
    """Whether all programs of the host see a mount, also after a restart of Grid Engine."""
    try:
        ours, first = (os.readlink(f"/proc/{pid}/ns/mnt") for pid in ("self", "1"))
    except OSError:
        return False
    return parent.startswith("/run/") and ours == first


def _mount(path: str) -> None:
    try:
        argv = ["mount", "-t", "tmpfs", "-o", _SIZE, "sge_jobs", path]
        ask(argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, _WAIT_S)
    except QueryFailed:  # a container does not allow it: use the directory itself
        pass
