"""Workers of ``spearmint worker`` as processes of this machine."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from spearmint.drivers.celery.app import Client
from spearmint.drivers.celery.broker import find_broker, queue_name
from tests.waiting import until

SPEARMINT = (sys.executable, "-m", "spearmint")


class Worker:
    """A worker, which is ready when the context begins; all its processes end with it.

    Args:
        root: Its root.
        log: Where it writes its output.
        options: Further arguments.
        hidden: A directory that it does not see; needs root.
        environment: Environment variables.
    """

    def __init__(
        self, root: Path, log: Path, *options: str, hidden: Path | None = None, **environment: str
    ) -> None:
        argv = [*SPEARMINT, "worker", "--root", str(root), *options]
        if hidden is not None:
            mount = 'mount -t tmpfs none "$0" && exec "$@"'
            argv = ["unshare", "--mount", "sh", "-c", mount, str(hidden), *argv]
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                argv,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._seen = {self.process.pid: psutil.Process(self.process.pid)}

    def family(self) -> list[psutil.Process]:
        """Return all processes of the worker that run, also those whose parent died."""
        for known in list(self._seen.values()):
            with contextlib.suppress(psutil.Error):
                self._seen |= {p.pid: p for p in known.children(recursive=True)}
        return [p for p in self._seen.values() if _runs(p)]

    def slots(self) -> list[psutil.Process]:
        return [p for p in self.family() if "spearmint.drivers.celery.consume" in _words(p)]

    def watchers(self) -> list[psutil.Process]:
        return [p for p in self.family() if "spearmint.trial.supervise" in _words(p)]

    def __enter__(self) -> Self:
        def is_ready() -> bool:
            if self.process.poll() is not None:
                raise AssertionError(self.log.read_text())
            return self.log.read_text().count(" ready.") >= max(1, len(self.slots()))

        try:
            until(is_ready)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self.family():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        self.process.wait()
        until(lambda: not self.family())


def connected() -> list[dict[str, object]]:
    """Return what the workers answer that a new command reaches."""
    return [dict(slot) for slot in Client(find_broker(), queue_name("")).slots(wait_s=1.0)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
