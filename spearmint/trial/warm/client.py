"""Start a warm process, and fork trials from it; see :mod:`spearmint.trial.warm.process`."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Mapping, Sequence

from spearmint.trial.warm.messages import CLEAN, IN_JOB, receive, send

_START_S = 10.0  # of a fork on a busy machine
_REPORT_S = 5.0
EXITED = "exited"


class Started:
    """A trial that a keeper has forked.

    Attributes:
        pid: Process id of its runner.
    """

    def __init__(self, pid: int, report: int) -> None:
        self.pid, self._report = pid, report
        self._status: int | None = None
        self._is_clean = False
        self._close = weakref.finalize(self, os.close, report)

    def send_signal(self, number: int) -> None:
        """Signal the runner."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self) -> int | None:
        """Return the exit status when the runner has ended; None if its keeper was killed."""
        self._read(None)
        return self._status

    def returncode(self) -> int | None:
        """Return the exit status, negative for a signal; None if the keeper did not report it."""
        if self._status is None:
            self._read(time.monotonic() + _REPORT_S)
        return self._status

    def is_clean(self, timeout_s: float) -> bool:
        """Wait until the keeper has ended all processes of the trial; return whether it has."""
        deadline = time.monotonic() + timeout_s
        while not self._is_clean and self._read(deadline):
            pass
        return self._is_clean

    def _read(self, deadline: float | None) -> bool:
        """Read a line; return False at the end of the report or after the deadline.

        Args:
            deadline: In the time of ``time.monotonic``; None to wait without a limit.
        """
        if not self._close.alive:
            return False
        text = _read_line(self._report, deadline)
        self._is_clean = text == CLEAN
        if self._is_clean or text == "":
            self._close()
        elif text:
            self._status = int(text)
        return bool(text)


class WarmProcess:
    """One warm process, which imports in the background.

    Args:
        directory: The experiment's directory.
        name: Name of the user's module.
        environment: Its environment variables.
        in_job: Whether it and its trials belong to the job of this process: they stay in its
            process group and session, and inherit its files, such as the lock of a GPU.

    Attributes:
        problem: Why it cannot fork trials; empty if it can, or while it imports.
    """

    def __init__(
        self, directory: str, name: str, environment: Mapping[str, str], *, in_job: bool = False
    ) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-P", "-m", "spearmint.trial.warm.process", str(theirs.fileno())]
        with theirs:
            theirs.set_inheritable(True)
            self._child = subprocess.Popen(
                [*argv, directory, name, *([IN_JOB] if in_job else [])],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=() if in_job else (theirs.fileno(),),
                close_fds=not in_job,
                start_new_session=not in_job,
            )
        self._is_ready = False
        self.problem = ""
        self._end = weakref.finalize(self, _end, self._channel, self._child)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    def close(self) -> None:
        """Let the process exit; its trials continue."""
        self._end()

    def is_ready(self, timeout_s: float = 0.0) -> bool:
        """Return whether it can fork trials; if it never can, ``problem`` says why.

        Args:
            timeout_s: How long to wait until it has imported.
        """
        poller = select.poll()
        poller.register(self._channel, select.POLLIN)
        is_waiting = not self._is_ready and not self.problem
        if poller.poll(timeout_s * 1000 if is_waiting else 0) and not self.problem:
            received = None
            with contextlib.suppress(OSError, ValueError):
                received = receive(self._channel)
            self.problem = received[0]["problem"] if received else EXITED
            self._is_ready = not self.problem
        return self._is_ready

    def fork(self, request: Mapping[str, object], fds: Sequence[int]) -> Started | None:
        """Fork the runner of a trial; return None if the process has exited.

        Raises:
            TimeoutError: It does not answer and was killed; the trial's lock tells if it runs.
        """
        report, theirs = os.pipe()
        try:
            send(self._channel, request, [*fds, theirs])
        except OSError:
            os.close(report)
            return None
        finally:
            os.close(theirs)
        text = _read_line(report, time.monotonic() + _START_S)
        if text:
            return Started(int(text), report)
        os.close(report)
        if text is None:
            self._child.kill()
            raise TimeoutError("the warm process does not answer")
        return None


def _read_line(fd: int, deadline: float | None) -> str | None:
    """Return a line; empty at the end of the file, None after the deadline."""
    text = b""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while not text.endswith(b"\n"):
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        if not poller.poll(left):
            return None
        piece = os.read(fd, 1)
        if not piece:
            return ""
        text += piece
    return text.decode().strip()


def _end(channel: socket.socket, child: subprocess.Popen[bytes]) -> None:
    """Let the warm process exit: it reads the end of the channel."""
    channel.close()
    if child.poll() is None:
        child.returncode = 0  # otherwise Popen warns that the process still runs
