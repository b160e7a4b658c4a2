"""The directory of lock files, one per GPU, which every user can open but not remove.

Users may replace files by links or by other users' files. Therefore, links are not followed, and
only regular files with one name are used.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

HIGH_DESCRIPTOR = 200
"""Scripts use small descriptors, and bash uses 255."""

_CLAIMS = "claims"
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockError(Exception):
    """The directory or a lock file cannot be used."""


def default_directory() -> str:
    """Return the directory of lock files: in memory, writable for all, the same for every job."""
    try:
        mode = os.stat("/run/lock").st_mode
    except OSError:
        mode = 0
    shared = stat.S_ISVTX | stat.S_IWOTH
    return "/run/lock/sge_jobs" if mode & shared == shared else "/dev/shm/sge_jobs"  # noqa: S108 (made without following links)


class LockFiles:
    """The lock files of this host.

    Args:
        directory: Path of the directory; created if missing.

    Raises:
        LockError: The directory cannot be created or opened.
    """

    def __init__(self, directory: str) -> None:
        self._path = directory
        self._directory = _open_directory(directory)

    def close(self) -> None:
        """Close the directory; this releases no lock."""
        os.close(self._directory)

    def own(self) -> None:
        """Make root the owner of the directory and its files, so that no user can remove a lock."""
        if os.getuid() != 0:
            return
        os.fchown(self._directory, 0, 0)
        os.fchmod(self._directory, 0o1777)
        for name in os.listdir(self._directory):
            try:  # noqa: SIM105 (the import of contextlib takes 4 ms)
                self._own_file(name)
            except OSError:
                pass

    def _own_file(self, name: str) -> None:
        status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            return
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.unlink(name, dir_fd=self._directory)
            return
        descriptor = os.open(name, _OPEN, dir_fd=self._directory)
        try:
            status = os.fstat(descriptor)  # the name may have been given to another file
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.fchown(descriptor, 0, 0)
                os.fchmod(descriptor, 0o666)
        finally:
            os.close(descriptor)

    def mutex(self, until: float) -> int:
        """Return the descriptor of the lock on all claims; -1 if it is not free by ``until``."""
        descriptor = self.open(_CLAIMS)
        while True:
            if try_lock(descriptor, fcntl.LOCK_EX):
                return descriptor
            if time.monotonic() >= until:
                os.close(descriptor)
                return -1
            time.sleep(0.005)

    def open(self, name: str) -> int:
        """Return a descriptor of lock file ``name``, which is created if missing.

        Raises:
            LockError: It is a link, not a regular file, or not accessible for this user.
        """
        for _ in range(10):
            try:
                descriptor = self._open_or_make(name)
            except FileExistsError:
                continue
            except OSError as error:
                raise LockError(f"{self._path}/{name}: {error.strerror}") from error
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                os.close(descriptor)
                raise LockError(f"{self._path}/{name} is not a regular file with one name")
            if status.st_nlink == 1:
                return descriptor
            os.close(descriptor)
        raise LockError(f"{self._path}/{name}: another process keeps removing and creating it")

    def _open_or_make(self, name: str) -> int:
        # fs.protected_regular refuses O_CREAT on another user's file in a sticky directory.
        try:
            return os.open(name, _OPEN, dir_fd=self._directory)
        except FileNotFoundError:
            before = os.umask(0)
            try:
                flags = _OPEN | os.O_CREAT | os.O_EXCL
                return os.open(name, flags, 0o666, dir_fd=self._directory)
            finally:
                os.umask(before)

    def lock(self, name: str, kind: int) -> int:
        """Return the descriptor of ``name``, locked as ``kind`` (LOCK_EX, LOCK_SH); else -1."""
        try:
            descriptor = self.open(name)
        except LockError:
            return -1
        if try_lock(descriptor, kind) and os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)
        return -1


def _open_directory(path: str) -> int:
    before = os.umask(0)
    try:
        os.mkdir(path, 0o1777)
    except FileExistsError:
        pass
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from error
    finally:
        os.umask(before)
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from error


def try_lock(descriptor: int, kind: int) -> bool:
    """Try to take the lock without waiting; return whether it was free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def raise_descriptor(descriptor: int) -> int:
    """Return a copy of ``descriptor`` above :data:`HIGH_DESCRIPTOR` that the job inherits."""
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH_DESCRIPTOR)
    except OSError:
        os.set_inheritable(descriptor, True)
        return descriptor
    os.close(descriptor)
    return high
