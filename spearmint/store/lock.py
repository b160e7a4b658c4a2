"""Allow one controller per experiment: a lock that the kernel frees when its process ends."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from types import TracebackType
from typing import Any

from spearmint.errors import AlreadyRunning, NotWritable, next_command
from spearmint.layout import Layout
from spearmint.store.mounts import is_in_bucket

_WAIT_S = 0.5  # a reader can hold the lock for a moment
_RETRY_S = 0.02


class ExperimentLock:
    """Lock the directory of an experiment, as a context manager.

    Raises:
        AlreadyRunning: Another controller runs; the message has its process, host and start.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._fd: int | None = None

    def acquire(self) -> None:
        """Acquire the lock. Raises AlreadyRunning."""
        deadline = time.monotonic() + _WAIT_S
        while self._fd is None:
            fd = self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(fd, 1000, 0)
                os.close(fd)
                if time.monotonic() > deadline:
                    raise self._held(_parsed(holder)) from None
                time.sleep(_RETRY_S)
                continue
            if self._is_current(fd):
                self._fd = fd
            else:
                os.close(fd)  # a cleanup has deleted the file
        line = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(line).encode(), 0)
        except OSError:
            self.release()  # otherwise a later call of this process fails
            raise

    def _open(self) -> int:
        path = self._layout.lock
        if is_in_bucket(path):
            raise NotWritable(
                f"{self._layout.root} is in an S3 bucket, where files cannot be locked or renamed",
                "Move the experiment to a local disk, EBS, EFS or FSx. Trials can read S3.",
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise NotWritable(f"cannot write in {self._layout.root}: {error.strerror}") from None

    def is_held(self) -> bool:
        """Return whether this object has the lock, and its file is still there."""
        return self._fd is not None and self._is_current(self._fd)

    def _is_current(self, fd: int) -> bool:
        try:
            return os.path.samestat(os.fstat(fd), self._layout.lock.stat())
        except FileNotFoundError:
            return False

    def _held(self, holder: dict[str, Any]) -> AlreadyRunning:
        fix = f"Show its state: {next_command('status', self._layout.root)}"
        if (holder.get("pid"), holder.get("host")) == (os.getpid(), socket.gethostname()):
            fix = "This is the same process: close() its other spearmint.Search first."
        return AlreadyRunning(
            f"the experiment in {self._layout.root} is already running{_describe(holder)}", fix
        )

    def release(self) -> None:
        """Release the lock, even if a fork of this process still has the file open."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> ExperimentLock:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


def holder_of(layout: Layout) -> dict[str, Any] | None:
    """Return pid, host and start of the running controller; None if none runs."""
    try:
        fd = os.open(layout.lock, os.O_RDONLY | os.O_CLOEXEC)  # read-only users can ask, too
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parsed(os.pread(fd, 1000, 0))
    finally:
        os.close(fd)
    return None


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        held: object = json.loads(raw)
    except ValueError:
        return {}
    return held if isinstance(held, dict) else {}


def _describe(held: dict[str, Any]) -> str:
    try:
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(held["since"]))
        return f" as process {held['pid']} on {held['host']} since {since}"
    except (KeyError, TypeError):
        return ""
