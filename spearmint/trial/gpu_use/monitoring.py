"""Start and end the monitor of a trial's GPUs, from its runner; never an error, and no waiting."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import sys
from typing import NoReturn

from spearmint.layout import TrialFolder
from spearmint.trial.environment import GPU_SAMPLE_S

_END_S = 1.0  # how long the end of a trial waits for the last record


class Monitor:
    """The monitor of a trial that started at ``start``, in its folder.

    It is not a child of this process, so that code that waits for its children does not meet it.
    It has no file of this process, such as the locks of the trial and of its GPUs.
    """

    def __init__(self, folder: TrialFolder, start: float, step_s: float) -> None:
        self._channel, theirs = socket.socketpair()
        self._identity = _identity(self._channel.fileno())
        module = "spearmint.trial.gpu_use.monitor"
        words = [str(folder.path), str(os.getpid()), repr(start), repr(step_s)]
        argv = [sys.executable, "-P", "-m", module, *words]
        with theirs:
            if (child := os.fork()) == 0:
                try:
                    if os.fork() == 0:
                        _become(argv, theirs.fileno())
                finally:
                    os._exit(0)
            os.waitpid(child, 0)

    @staticmethod
    def of(folder: TrialFolder, start: float) -> Monitor | None:
        """Start a monitor; None if it is off or the package nvidia-ml-py is not installed."""
        with contextlib.suppress(OSError, ImportError, ValueError):
            step_s = float(os.environ.get(GPU_SAMPLE_S) or 1)
            if step_s > 0 and importlib.util.find_spec("pynvml") is not None:
                return Monitor(folder, start, step_s)
        return None

    def end(self) -> None:
        """Let the monitor write its last record and exit, also if forks of the trial continue."""
        if self._identity != _identity(self._channel.fileno()):
            self._channel.detach()  # the trial closed it; the number can be another file
            return
        with contextlib.suppress(OSError), self._channel as channel:
            channel.shutdown(socket.SHUT_WR)
            channel.setblocking(False)
            if channel.recv(1):  # otherwise it is still starting
                channel.settimeout(_END_S)
                while channel.recv(64):
                    pass


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _become(argv: list[str], channel: int) -> NoReturn:
    """Replace this fork by the monitor, whose only files are the channel and /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(channel, 0)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.execv(argv[0], argv)  # noqa: S606
