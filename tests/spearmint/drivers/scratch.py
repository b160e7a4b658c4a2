"""A minimal queue, as a user could write it: each job is a process and a file."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from spearmint.drivers import (
    Dialect,
    DriverSettings,
    Queue,
    QueueDriver,
    QueueJob,
    QueueJobState,
    SubmitSpec,
)

START = 'echo "$$" > "$0.part"; mv "$0.part" "$0"; exec "$@"'


class Scratch(Queue):
    def __init__(self, settings: DriverSettings) -> None:
        self._pids = settings.directory / ".scratch"

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str:
        self._pids.mkdir(exist_ok=True)
        file = self._pids / f"{spec.token}-{uuid.uuid4().hex}"
        argv = ["setsid", "--fork", "sh", "-c", START, file, *spec.argv]
        environment = {**os.environ, **spec.environment}
        with spec.output.open("ab") as out:
            subprocess.run(argv, env=environment, cwd=spec.directory, stdout=out, stderr=out)
        while not file.exists():
            time.sleep(0.001)
        return file.name

    def jobs(self) -> Sequence[QueueJob]:
        files = [file for file in self._pids.glob("*-*") if self._runs(file)]
        running = QueueJobState.RUNNING
        return [QueueJob(id=f.name, token=f.name.partition("-")[0], state=running) for f in files]

    def _runs(self, file: Path) -> bool:
        leader = int(file.read_text())
        left = {pid for pid in psutil.pids() if _is_of(pid, leader)}
        if left and leader not in left:
            self.cancel([file.name])  # leftover processes of the trial
        return bool(left)

    def cancel(self, ids: Collection[str]) -> None:
        for id in ids:
            with suppress(ProcessLookupError, FileNotFoundError):
                os.killpg(int((self._pids / id).read_text()), signal.SIGKILL)


def _is_of(pid: int, leader: int) -> bool:
    with suppress(psutil.Error, OSError):
        return os.getsid(pid) == leader and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


class ScratchDriver(QueueDriver):
    queue_type, dialect = Scratch, Dialect(queue="Scratch")
