"""Start the trials of a pilot job: from a warm process, or each as a new process.

See :mod:`spearmint.trial.warm.process`. This module imports only the standard library.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from spearmint.layout import PROCESSES, TrialFolder, read_json
from spearmint.trial.leftovers import end_children
from spearmint.trial.warm.client import EXITED, Started, WarmProcess
from spearmint.trial.warm.messages import CHANGED

_IMPORT_S = 60.0  # how long a trial waits for the imports; it would import as long itself
_CLEAN_S = 12.0  # longer than the keeper of a trial needs to end what the trial left
_STEP_S = 0.1
_STDOUT = 1


class Signals:
    """Forwards signals that only this process gets to the runner, even if it starts later.

    Attributes:
        received: Number of the last SIGTERM or SIGINT; 0 if none arrived.
    """

    def __init__(self) -> None:
        self.received = 0
        self._send: Callable[[int], None] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._forward)
        # The queue sends its warnings to all processes of the job.
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, lambda number, frame: None)

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        if self._send is not None:
            self._send(number)

    def while_waiting(self, child: subprocess.Popen[bytes] | _Forked) -> int:
        """Wait for a runner; forward signals to it, too those that arrived before its start."""
        self._send = child.send_signal
        if self.received:
            child.send_signal(self.received)
        try:
            return child.wait()
        finally:
            self._send = None


class _Forked:
    """A runner that a keeper has forked; if the keeper is killed, it is a child of this process."""

    def __init__(self, started: Started) -> None:
        self._started = started
        self.send_signal = started.send_signal

    def wait(self) -> int:
        """Return the exit status when the runner has ended."""
        status = self._started.wait()
        return _status_of_orphan(self._started.pid) if status is None else status


class PilotRuns:
    """The trials of one pilot, and the warm process for the module of the last one.

    Args:
        signals: Those that the pilot receives.
    """

    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self._key: tuple[str, str] | None = None
        self._warm: WarmProcess | None = None
        self._said = ""

    def run(self, folder: str, environment: Mapping[str, str]) -> int:
        """Run the trial in ``folder``; return the exit status of its runner."""
        started = self._fork(folder, environment)
        if started is not None:
            status = self._signals.while_waiting(_Forked(started))
            started.is_clean(_CLEAN_S)
            return status
        if self._signals.received:
            return -self._signals.received
        argv = [sys.executable, "-P", "-m", "spearmint.trial.runner", folder]
        # The runner inherits the lock of the GPU: if this process is killed, the GPU stays
        # reserved.
        with subprocess.Popen(argv, env=environment, close_fds=False) as child:
            return self._signals.while_waiting(child)

    def end_leftovers(self) -> None:
        """Terminate the processes that trials left."""
        end_children([] if self._warm is None else [self._warm.pid])

    def close(self) -> None:
        """End the warm process, which has the lock of the GPU, and leftover processes."""
        self._forget()
        end_children()

    def _forget(self) -> None:
        if self._warm is not None:
            self._warm.close()
        self._warm = self._key = None

    def _fork(self, folder: str, environment: Mapping[str, str]) -> Started | None:
        """Fork a runner from the warm process; return None if it must be a new process."""
        for _ in range(2):  # the modules can have changed
            warm = self._ready_process(folder, environment)
            if warm is None:
                return None
            request = {"folder": folder, "environment": dict(environment)}
            try:
                started = warm.fork(request, (_STDOUT,))
            except TimeoutError:  # it was killed; the trial may have started
                self.close()
                return None
            if started is not None:
                return started
            self._forget()
        return None

    def _ready_process(self, folder: str, environment: Mapping[str, str]) -> WarmProcess | None:
        """Return a process that has imported the modules of a trial; None if there can be none."""
        key = _key(folder)
        if key is None or sys.platform != "linux" or _is_address_space_limited():
            return None
        if key != self._key or (self._warm is not None and self._warm.problem in (CHANGED, EXITED)):
            self._forget()
        if self._warm is None:
            self._key, self._warm = key, WarmProcess(*key, environment, in_job=True)
        warm, deadline = self._warm, time.monotonic() + _IMPORT_S
        while not (warm.is_ready(_STEP_S) or warm.problem or self._signals.received):
            if time.monotonic() > deadline:
                return None
        if warm.problem not in ("", CHANGED, EXITED, self._said):
            self._said = warm.problem
            sys.stderr.write(f"Each trial starts a new process: {warm.problem}.\n")
            sys.stderr.flush()
        return warm if warm.is_ready() and not self._signals.received else None


def _key(folder: str) -> tuple[str, str] | None:
    """Return directory and name of the user's module; None if the trial has none."""
    spec = read_json(TrialFolder(Path(folder)).spec) or {}
    if spec.get("language") != "PYTHON" or spec.get(PROCESSES):
        return None
    return str(spec["directory"]), str(spec["name"])


def _is_address_space_limited() -> bool:
    """Return whether the job has a limit of virtual memory.

    Grid Engine adds up that of all processes, and a fork has as much as its parent.
    """
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _status_of_orphan(pid: int) -> int:
    """Return the exit status of a runner whose keeper was killed: it is now a child of this."""
    while True:
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:
            if not Path(f"/proc/{pid}").exists():
                return 1
            time.sleep(_STEP_S)
