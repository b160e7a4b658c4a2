"""``spearmint worker``: one worker process for each GPU, restarted if it dies."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from types import FrameType

from spearmint.drivers.celery.slot import SlotSettings
from spearmint.drivers.celery.watchers import end_children
from spearmint.trial.leftovers import adopt_orphans
from spearmint.trial.supervise import descendants

log = logging.getLogger("spearmint.worker")

_STEP_S = 0.2
_RESTART_S = (1.0, 60.0)  # shortest and longest pause before a restart
_LASTING_S = 60.0  # a process that ran this long restarts soon
_IDLE_S = 5.0  # how long a process without a trial may take to stop
_SETTLE_S = 8.0  # how long the supervisor of a dead worker may end its trial


@dataclass(slots=True)
class _Process:
    settings: SlotSettings
    child: subprocess.Popen[bytes]
    busy: int  # file descriptor
    began: float
    pause_s: float = _RESTART_S[0]
    due: float = 0.0


class Manager:
    """Runs the worker processes until SIGTERM; the first lets trials finish, the second not."""

    def __init__(self, slots: Sequence[SlotSettings]) -> None:
        self._slots = slots
        self._processes: list[_Process] = []
        self._signals = 0

    def run(self) -> int:
        """Return 0 after a drain, 1 after a second signal."""
        adopt_orphans()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        for slot in self._slots:
            busy = os.memfd_create("busy")
            self._processes.append(_Process(slot, _start(slot, busy), busy, time.monotonic()))
        while not self._signals:
            for process in self._processes:
                self._keep_alive(process)
            time.sleep(_STEP_S)
        is_drained = self._drain()
        self._settle([])
        return 0 if is_drained else 1

    def _drain(self) -> bool:
        """Stop the processes after their trials; return False after a second signal."""
        log.warning("finishing trials; a second signal ends them")
        self._send(signal.SIGTERM)
        busy = dict.fromkeys((p.child.pid for p in self._processes), time.monotonic())
        while left := [p for p in self._processes if p.child.poll() is None]:
            if self._signals > 1:
                log.warning("ending trials")
                self._send(signal.SIGKILL)
                return False
            for process in left:
                if _is_busy(process):
                    busy[process.child.pid] = time.monotonic()
                elif time.monotonic() - busy[process.child.pid] > _IDLE_S:
                    process.child.kill()  # Celery waits for ever for a broker that is down
            time.sleep(_STEP_S)
        return True

    def _send(self, number: int) -> None:
        for process in self._processes:
            if process.child.poll() is None:
                process.child.send_signal(number)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._signals += 1

    def _keep_alive(self, process: _Process) -> None:
        if process.child.poll() is None:
            return
        now = time.monotonic()
        if not process.due:
            lasted = now - process.began > _LASTING_S
            process.pause_s = _RESTART_S[0] if lasted else process.pause_s
            process.due = now + process.pause_s
            process.pause_s = min(2 * process.pause_s, _RESTART_S[1])
            status = process.child.returncode
            log.warning("worker %d ended with status %d", process.child.pid, status)
            self._settle([p.child.pid for p in self._processes if p.child.poll() is None])
        if now >= process.due:
            process.child = _start(process.settings, process.busy)
            process.began, process.due = now, 0.0

    def _settle(self, alive: Sequence[int]) -> None:
        """Let the supervisor of a dead worker end its trial; then kill what is left."""
        deadline = time.monotonic() + _SETTLE_S
        while _orphans(alive) and time.monotonic() < deadline:
            time.sleep(0.05)
        for pid in _orphans(alive):
            log.warning("killing process %d, left by a worker", pid)
        end_children(keep=_families(alive))


def _is_busy(process: _Process) -> bool:
    """Return whether a worker process has a job, or sends what a job left."""
    return os.pread(process.busy, 1, 0) == b"\1"


def _start(slot: SlotSettings, busy: int) -> subprocess.Popen[bytes]:
    """Start a worker process; it reads the settings, with the password, from a pipe."""
    passed = [busy, *([slot.gpu_lock] if slot.gpu_lock >= 0 else [])]
    os.pwrite(busy, b"\0", 0)
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "spearmint.drivers.celery.consume"],
        stdin=subprocess.PIPE,
        pass_fds=passed,
        start_new_session=True,
    )
    if child.stdin is not None:
        child.stdin.write(
            json.dumps({**asdict(slot), "busy": busy, "manager": os.getpid()}).encode()
        )
        child.stdin.close()
    return child


def _orphans(alive: Sequence[int]) -> list[int]:
    """Return the running processes below this one that belong to no living worker."""
    families = _families(alive)
    for pid in descendants(os.getpid()):
        if pid not in families:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
    return [pid for pid in descendants(os.getpid()) if pid not in families]


def _families(alive: Sequence[int]) -> list[int]:
    return [*alive, *(below for pid in alive for below in descendants(pid))]


def slots_of(base: SlotSettings, gpus: dict[str, int], cpu_slots: int) -> list[SlotSettings]:
    """Return the settings of the processes: one for each GPU, or ``cpu_slots`` without GPUs."""
    if not gpus:
        return [base] * cpu_slots
    queues = (f"{base.base}.gpu", base.base)
    return [replace(base, gpu=uuid, gpu_lock=fd, queues=queues) for uuid, fd in gpus.items()]
