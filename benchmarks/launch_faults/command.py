"""A command in a process of its own, which can be interrupted and killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from unittest import mock

from starcluster.aws import client
from starcluster.launch import wait
from tests.testbed.hostless import HostlessCloud, without_hosts

CUTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Command:
    """A command in a process of its own.

    Attributes:
        was_cut: Name of the signal that was sent to it.
        killed: Whether it was killed, so that it could not report anything.
        ended: Monotonic time at which its end was seen.
    """

    words: tuple[str, ...]
    pid: int
    output: Path
    killed: bool = False
    was_cut: str = ""
    status: int | None = None
    ended: float = 0.0

    def has_ended(self) -> bool:
        """Return whether the command has ended."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status, self.ended = os.waitstatus_to_exitcode(status), time.monotonic()
        return self.status is not None

    def cut(self, number: int) -> None:
        """Send a signal, unless the command has ended."""
        if not self.has_ended():
            os.kill(self.pid, number)
            self.was_cut = signal.Signals(number).name
            self.killed = number == signal.SIGKILL

    def wait(self) -> str:
        """Return the output when the command has ended."""
        while not self.has_ended():
            time.sleep(0.02)
        return self.output.read_text()

    @property
    def says_nothing(self) -> bool:
        """Whether it was killed, or a signal came before Python could handle it."""
        return self.killed or (self.status or 0) < 0


def spawn(cloud: HostlessCloud, lag_s: float, *words: str) -> Command:
    """Start ``starcluster WORDS``.

    Args:
        lag_s: Longest lag of the fake EC2, and how long a request can be slow.
    """
    handle, path = tempfile.mkstemp(dir=cloud.folder, suffix=".out")
    signal.pthread_sigmask(signal.SIG_BLOCK, CUTS)  # until the command can handle them
    pid = os.fork()
    if not pid:
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        _serve(cloud, lag_s, words)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, CUTS)
    os.close(handle)
    return Command(words, pid, Path(path))


def _serve(cloud: HostlessCloud, lag_s: float, words: tuple[str, ...]) -> NoReturn:
    """Be the command ``starcluster WORDS``; never return."""
    status = 1
    try:
        os.environ.clear()
        os.environ.update(cloud.environment())
        cloud.forget_connections()
        sys.argv = ["starcluster", "-c", str(cloud.config), *words]
        wait.LAG_S = lag_s
        from starcluster.cli import main as command

        set_up_s = random.uniform(0.0, 0.5)  # noqa: S311
        with without_hosts(lambda: set_up_s, cloud.state), _session(cloud):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, CUTS)
            command()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _session(cloud: HostlessCloud) -> contextlib.AbstractContextManager[object]:
    """Use the session of this program, which has read boto3's models: that takes a second."""
    return mock.patch.object(client, "open_session", return_value=cloud.session)
