"""The command of the search, which is restarted after each end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import psutil

from benchmarks.queue_faults.beds import Bed
from tests.testbed.cell import UID

_LONGEST_S = 6.0  # of the seconds between a start and a kill


class Controller:
    """The command of the search.

    Attributes:
        kills: Number of SIGKILLs that it got.
        exits: Count of its exits by exit status.
    """

    def __init__(self, bed: Bed, argv: list[str], log: Path, draw: random.Random) -> None:
        self._bed, self._argv, self._log, self._draw = bed, argv, log, draw
        self._process: subprocess.Popen[bytes] | None = None
        self.kills, self.exits = 0, Counter[int]()

    def start(self) -> None:
        """Run the command, unless it runs."""
        if self.runs():
            return
        with self._log.open("ab") as log:
            log.write(f"--- {time.time():.1f} start\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                self._bed.cluster.enter(self._argv, uid=UID),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def runs(self) -> bool:
        """Return whether it runs; count its exit."""
        if self._process is not None and (status := self._process.poll()) is not None:
            self.exits[status] += 1
            self._process = None
        return self._process is not None

    def kill_later(self) -> None:
        """Start it if needed, and kill it at a random instant of its first seconds."""
        while True:
            self.start()
            if self.runs_until(time.monotonic() + self._draw.uniform(0.1, _LONGEST_S)):
                break
            time.sleep(1)
        for pid in self._pids():
            os.kill(pid, signal.SIGKILL)
        self._wait()
        self.kills += 1

    def _wait(self) -> None:
        if self._process is not None:
            self._process.wait()
            self._process = None

    def runs_until(self, instant: float) -> bool:
        """Return whether it still runs at ``instant``; return early if it exits."""
        while (running := self.runs()) and time.monotonic() < instant:
            time.sleep(0.02)
        return running

    def _pids(self) -> list[int]:
        """Return its process, without children that have the same command line."""
        found = self._bed.cluster.master.processes(f"spearmint --driver={self._bed.driver}")
        return [pid for pid in found if _parent(pid) not in found]

    def run_to_end(self, within_s: float) -> bool:
        """Rerun it after each exit until it exits with 0; return whether it did."""
        deadline = time.monotonic() + within_s
        self.start()
        while time.monotonic() < deadline:
            before = self.exits[0]
            if not self.runs():
                if self.exits[0] > before:
                    return True
                time.sleep(1)
                self.start()
            time.sleep(0.1)
        for pid in self._pids():
            os.kill(pid, signal.SIGKILL)
        return False


def _parent(pid: int) -> int:
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0
