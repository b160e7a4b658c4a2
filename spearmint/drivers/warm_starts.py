"""Start local trials from a warm process; see :mod:`spearmint.trial.warm.process`."""

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
from pathlib import Path

from spearmint.layout import TrialFolder, read_json
from spearmint.trial.warm.messages import CHANGED, CLEAN, receive, send

_START_S = 10.0  # of a fork on a busy machine
_IMPORT_S = 10.0  # how long a trial waits for the imports; it would import as long itself
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

    def _read(self, deadline: float) -> bool:
        """Read a line; return False at the end of the report or after the deadline."""
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
    """

    def __init__(self, directory: str, name: str, environment: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-P", "-m", "spearmint.trial.warm.process", str(theirs.fileno())]
        with theirs:
            self._child = subprocess.Popen(
                [*argv, directory, name],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._is_ready = self._has_waited = False
        self.problem = ""
        weakref.finalize(self, _end, self._channel, self._child)

    def is_ready(self, timeout_s: float = 0.0) -> bool:
        """Return whether it can fork trials; if it never can, ``problem`` says why.

        Args:
            timeout_s: How long to wait until it has imported; a second call does not wait again.
        """
        if self._has_waited:
            timeout_s = 0.0
        self._has_waited |= timeout_s > 0
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


class WarmStarts:
    """The warm processes of one driver, one for each module of users.

    Until a process is ready, and where none can be used, trials start in new processes.
    """

    def __init__(self) -> None:
        self._processes: dict[tuple[str, str], WarmProcess] = {}
        self._notices: list[str] = []
        self._said: set[str] = set()

    def take(self) -> list[str]:
        """Return new messages: why trials cannot start from a warm process."""
        found, self._notices = self._notices, []
        return found

    def process_for(
        self, folder: TrialFolder, environment: Mapping[str, str]
    ) -> WarmProcess | None:
        """Return the process for a trial; None if the trial cannot use one.

        Args:
            folder: The trial.
            environment: Environment variables of a new process.
        """
        spec = read_json(folder.spec) or {}
        if spec.get("language") != "PYTHON":
            return None
        return self.begin(Path(spec["directory"]), str(spec["name"]), environment)

    def begin(
        self, directory: Path, name: str, environment: Mapping[str, str]
    ) -> WarmProcess | None:
        """Start to import what NAME.py in ``directory`` imports; None if trials cannot be forked.

        Args:
            directory: The experiment's directory.
            name: Name of the user's module.
            environment: Environment variables of a new process.
        """
        if sys.platform != "linux":
            return None
        key = (str(directory), name)
        found = self._processes.get(key)
        if found is not None and not found.is_ready() and found.problem in (CHANGED, EXITED):
            found = None
        if found is None:
            found = self._processes[key] = WarmProcess(*key, environment)
        return found

    def start(
        self,
        folder: TrialFolder,
        environment: Mapping[str, str],
        warm_environment: Mapping[str, str],
        fds: Sequence[int],
    ) -> Started | None:
        """Fork the runner of a trial; return None if it must start in a new process.

        Args:
            folder: The trial.
            environment: Environment variables of the runner.
            warm_environment: Those of the warm process.
            fds: The trial's lock and its output.

        Raises:
            TimeoutError: It is unknown whether the trial starts; its lock tells.
        """
        process = self.process_for(folder, warm_environment)
        if process is None or not process.is_ready(_IMPORT_S):
            if process is not None and process.problem not in {"", CHANGED, EXITED, *self._said}:
                self._said.add(process.problem)
                self._notices.append(f"Each trial starts a new process: {process.problem}.")
            return None
        request = {"folder": str(folder.path), "environment": dict(environment)}
        return process.fork(request, fds)


def _read_line(fd: int, deadline: float) -> str | None:
    """Return a line; empty at the end of the file, None after the deadline."""
    text = b""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while not text.endswith(b"\n"):
        left = deadline - time.monotonic()
        if not poller.poll(max(0.0, left) * 1000):
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
