"""The files of the GPUs, one per GPU, which only root can open: users cannot lock or write them.

A file has its full size from the start, so that a claim does not need free space.

A job gets several GPUs at once or none: the file ``claims`` names the GPUs of a claim while their
files are written. If the claim is cut short, the next process that gets the mutex undoes it.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from sge_jobs.node.claim import record as records
from sge_jobs.node.claim.record import Record
from sge_jobs.node.claim.run_directory import LockError, open_private
from sge_jobs.node.gpus.inventory import RUN_DIRECTORY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DIRECTORY = RUN_DIRECTORY + "/locks"
HOLDERS = 64
"""Most records in one file: the processes that can share a GPU, and the tasks of parallel jobs."""

_CLAIMS, _CLAIMS_SIZE, _LONGEST = "claims", 8192, 65536
_TITLE = "sge_jobs claim 1"
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockFiles:
    """The files of this host's GPUs; only root can use them.

    Args:
        directory: Path of the directory; it and its parent are created if missing.

    Raises:
        LockError: The directory cannot be created or opened, or a user could write it.
    """

    def __init__(self, directory: str) -> None:
        self._path = directory
        self._directory = open_private(directory)

    def close(self) -> None:
        """Close the directory; this releases no GPU."""
        os.close(self._directory)

    def mutex(self, until: float) -> int:
        """Return the descriptor of the lock on all files; -1 if it is not free by ``until``.

        Undoes a claim of several GPUs whose process was killed.
        """
        descriptor = self._open(_CLAIMS, _CLAIMS_SIZE)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    os.close(descriptor)
                    return -1
                time.sleep(0.005)
            else:
                break
        try:
            self._undo(descriptor)
        except (OSError, LockError) as error:
            os.close(descriptor)
            raise LockError(f"{self._path}/{_CLAIMS}: {error}") from error
        return descriptor

    def write_all(self, holders: Mapping[str, Sequence[Record]], mine: Record) -> None:
        """Replace the records in several files, of which ``mine`` is the new one: all or none.

        The caller holds the mutex.

        Raises:
            LockError: As :meth:`write`; no file has ``mine`` then.
        """
        if len(holders) < 2:
            for name, found in holders.items():
                self.write(name, found)
            return
        lines = [_TITLE, "{} {}".format(*mine.identity), *holders, "end", ""]
        claims = self._open(_CLAIMS, _CLAIMS_SIZE)
        try:
            os.pwrite(claims, "\n".join(lines).encode() + b"\0", 0)
            for name, found in holders.items():
                self.write(name, found)
            os.pwrite(claims, b"\0", 0)
        except OSError as error:
            raise LockError(f"{self._path}/{_CLAIMS}: {error.strerror}") from error
        except LockError:
            self._undo(claims)
            raise
        finally:
            os.close(claims)

    def _undo(self, claims: int) -> None:
        """Remove the new record of a claim that was cut short from the files that it names."""
        text = os.pread(claims, _LONGEST, 0).partition(b"\0")[0]
        title, *lines = text.decode("ascii", "replace").split("\n")
        if title != _TITLE:
            return
        if lines[-2:] == ["end", ""]:  # otherwise no file was written
            for name in lines[1:-2]:
                self._remove(name, lines[0])
        os.pwrite(claims, b"\0", 0)

    def _remove(self, name: str, identity: str) -> None:
        try:
            holders = self.read(name)
            left = [one for one in holders if "{} {}".format(*one.identity) != identity]
            if len(left) < len(holders):
                self.write(name, left)
        except LockError:  # the claim did not get as far, or the GPU is given to nobody
            pass

    def read(self, name: str) -> list[Record]:
        """Return the records in file ``name``, by place; it is created if missing.

        Raises:
            LockError: The file cannot be used.
        """
        descriptor = self._open(name, HOLDERS * records.SIZE)
        try:
            data = os.pread(descriptor, HOLDERS * records.SIZE, 0)
        finally:
            os.close(descriptor)
        pieces = (data[at : at + records.SIZE] for at in range(0, len(data), records.SIZE))
        return [record for record in map(records.decode, pieces) if record is not None]

    def write(self, name: str, holders: Sequence[Record]) -> None:
        """Replace the records in file ``name``.

        Records that remain keep their order or move forward. So a write that is cut short leaves
        one twice, but loses none.

        Raises:
            LockError: The file cannot be used, or there are too many records.
        """
        if len(holders) > HOLDERS:
            raise LockError(f"{self._path}/{name}: a GPU has at most {HOLDERS} holders")
        texts = [records.encode(record) for record in holders]
        texts += [b"\0" * records.SIZE] * (HOLDERS - len(texts))
        descriptor = self._open(name, HOLDERS * records.SIZE)
        try:
            os.pwrite(descriptor, b"".join(texts), 0)
        except OSError as error:
            raise LockError(f"{self._path}/{name}: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _open(self, name: str, size: int) -> int:
        try:
            descriptor = self._open_or_make(name)
        except OSError as error:
            raise LockError(f"{self._path}/{name}: {error.strerror}") from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise LockError(f"{self._path}/{name} is not a regular file")
            if os.fstat(descriptor).st_size < size:
                os.posix_fallocate(descriptor, 0, size)
        except (OSError, LockError) as error:
            os.close(descriptor)
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise LockError(f"{self._path}/{name}: {what}") from error
        return descriptor

    def _open_or_make(self, name: str) -> int:
        try:
            return os.open(name, _OPEN | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=self._directory)
        except FileExistsError:
            return os.open(name, _OPEN, dir_fd=self._directory)
