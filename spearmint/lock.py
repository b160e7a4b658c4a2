"""One controller per experiment: a lock that the kernel frees when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
import uuid
from types import TracebackType
from typing import Any

from spearmint.errors import AlreadyRunning, InputError
from spearmint.layout import Layout, read_json, write_json


class ExperimentLock:
    """Hold the directory of an experiment, as a context manager.

    Raises:
        AlreadyRunning: Another controller holds it; the message names process, host and time.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._fd: int | None = None

    def acquire(self) -> None:
        """Take the lock, or raise AlreadyRunning."""
        path = self._layout.lock
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise InputError(f"cannot write in {self._layout.root}: {error}") from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe(os.pread(fd, 1000, 0))
            os.close(fd)
            raise AlreadyRunning(
                f"the experiment in {self._layout.root} is already being run{holder}",
                f"Watch it: spearmint status {self._layout.root}",
            ) from None
        line = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(line).encode(), 0)
        self._fd = fd

    def release(self) -> None:
        """Let the next controller in."""
        if self._fd is not None:
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
    """Return pid, host and start of the controller that runs now; None when none does."""
    try:
        fd = os.open(layout.lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        try:
            holder: dict[str, Any] = json.loads(os.pread(fd, 1000, 0))
        except ValueError:
            return {}
        return holder
    finally:
        os.close(fd)
    return None


def _describe(raw: bytes) -> str:
    try:
        held = json.loads(raw)
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(held["since"]))
        return f" by process {held['pid']} on {held['host']} since {since}"
    except (ValueError, KeyError, TypeError):
        return ""


def owner_token(layout: Layout, experiment: str) -> str:
    """Return the token of this directory, made at its first use for ``experiment``.

    Raises:
        InputError: The directory holds the search of another experiment.
    """
    known = read_json(layout.experiment)
    if known is None:
        known = {"name": experiment, "token": uuid.uuid4().hex}
        write_json(layout.experiment, known)
    if known["name"] != experiment:
        raise InputError(
            f"{layout.root} holds the search of experiment {known['name']!r}, not {experiment!r}",
            "Give each experiment a directory of its own, "
            f"or delete the old search: spearmint cleanup {layout.root}",
        )
    return str(known["token"])
