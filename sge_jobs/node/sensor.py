"""Load sensor of the execution daemon: update the list of GPUs and report who uses each.

For each line on standard input, it prints values of the host: ``gpu``, the number of GPUs for which
the scheduler can send jobs, and ``gpu_state``, see :mod:`sge_jobs.gpu_state`. It exits on ``quit``
or the end of input.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from sge_jobs import gpu_state
from sge_jobs.gpu_state import GpuStatus, GpuUse, Intruder
from sge_jobs.node.claim.lock_files import default_directory
from sge_jobs.node.claim.lock_state import LockState, of_same_job
from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.processes import read_process, shepherd_of
from sge_jobs.node.gpus import cell_counts, detect, inventory
from sge_jobs.node.queries import read_all

_FIND_AGAIN_S = 20.0
_ASK_AGAIN_S = 300.0
_QUERY_S = 30.0
_MUTEX_S = 5.0
_TOLERATED = ("nvidia-cuda-mps",)
_killed: list[int] = []


class Sensor:
    """Reports the GPUs, and keeps their list between reports.

    Args:
        host: Name of the host that the execution daemon expects.
        cache: File with the list of GPUs, which starters read.
        declared: File in which an administrator declares GPUs.
        directory: Directory of lock files; empty for the default.
    """

    def __init__(
        self,
        *,
        host: str = "",
        cache: str = inventory.CACHE,
        declared: str = inventory.DECLARED,
        directory: str = "",
    ) -> None:
        self.host = host or os.environ.get("HOST", "") or socket.gethostname()
        self._cache, self._declared, self._directory = cache, declared, directory
        self._boot = inventory.boot_id()
        self._found: inventory.Inventory | None = None
        self._find_at = self._ask_at = 0.0
        self._kind, self._given = "", 0

    def report(self) -> list[str]:
        """Return the lines between ``begin`` and ``end``, and update the cache and the locks."""
        known = self._inventory()
        states = self._survey(known) if known.gpus else []
        foreign = self._foreign(known, states)
        uses = [
            use_of(gpu, state, foreign.get(gpu.uuid, ()))
            for gpu, state in zip(known.gpus, states)  # noqa: B905 (Python 3.9 has no strict)
        ]
        by_uuid = {
            use.uuid: [process.pid for process in use.intruders if process.foreign] for use in uses
        }
        blocked = {uuid: pids for uuid, pids in by_uuid.items() if pids}
        self._write(known, blocked)
        lines = [f"{self.host}:gpu_state:{gpu_state.encode(uses)}"]
        if self._kind in ("", "YES", "JOB"):
            lines.insert(0, f"{self.host}:gpu:{for_scheduler(uses, self._given)}")
        return lines

    def _inventory(self) -> inventory.Inventory:
        if self._found is None or time.monotonic() >= self._find_at:
            found = in_child(lambda: inventory.encode(detect.detect(self._declared), self._boot))
            fresh = inventory.decode(found, self._boot) if found is not None else None
            if fresh is not None:
                self._found = fresh
            elif self._found is None:
                self._found = inventory.Inventory(source="none", gpus=())
            self._ask()
            self._find_at = time.monotonic() + _FIND_AGAIN_S
        return self._found

    def _ask(self) -> None:
        """Query the master how the cell counts GPUs, and how many it configures for this host."""
        if self._kind and time.monotonic() < self._ask_at:
            return
        self._kind = cell_counts.consumable_kind() or self._kind
        if self._found is not None and self._found.gpus:
            self._given = cell_counts.given_gpus(self.host) or self._given
        self._ask_at = time.monotonic() + _ASK_AGAIN_S

    def _write(self, known: inventory.Inventory, blocked: Mapping[str, Sequence[int]]) -> None:
        fresh = inventory.Inventory(
            source=known.source, gpus=known.gpus, per_slot=self._kind == "YES", blocked=blocked
        )
        text = inventory.encode(fresh, self._boot)
        with contextlib.suppress(OSError):
            if inventory.read_text(self._cache) == text:
                return
        os.makedirs(os.path.dirname(self._cache), mode=0o755, exist_ok=True)
        inventory.write_whole(self._cache, text)

    def _survey(self, known: inventory.Inventory) -> list[LockState]:
        locks = Locks(self._directory or default_directory(), self._boot)
        try:
            locks.own()
            mutex = locks.mutex(time.monotonic() + _MUTEX_S)
            try:
                return locks.survey(known.uuids, tidy=mutex >= 0)
            finally:
                if mutex >= 0:
                    os.close(mutex)
        finally:
            locks.close()

    def _foreign(
        self, known: inventory.Inventory, states: Sequence[LockState]
    ) -> dict[str, tuple[Intruder, ...]]:
        if known.source in ("declared", "none"):
            return {}
        text = in_child(lambda: "\n".join(f"{p.uuid},{p.pid},{p.name}" for p in detect.processes()))
        if not text:
            return {}
        by_uuid = {state.uuid: state for state in states}
        found: dict[str, tuple[Intruder, ...]] = {}
        for gpu_process in detect.parse_smi_processes(text):
            state = by_uuid.get(gpu_process.uuid)
            if state is not None and is_foreign(gpu_process, state):
                intruder = Intruder(pid=gpu_process.pid, command=gpu_process.name, foreign=True)
                found[gpu_process.uuid] = (*found.get(gpu_process.uuid, ()), intruder)
        return found


def is_foreign(gpu_process: detect.GpuProcess, state: LockState, proc: str = "/proc") -> bool:
    """Whether ``gpu_process`` belongs neither to the GPU's job nor to its last job."""
    process = read_process(gpu_process.pid, proc)
    if gpu_process.name.startswith(_TOLERATED) or process is None:
        return False
    if state.record is None:
        return True
    if state.record.group and state.record.group in process.groups:
        return False
    shepherd = shepherd_of(process, proc=proc)
    return shepherd is None or not of_same_job(state.record, shepherd, proc)


def use_of(gpu: inventory.Gpu, state: LockState, foreign: Sequence[Intruder]) -> GpuUse:
    """Return the report on one GPU: who uses it."""
    record = state.record
    if state.outlived:
        status = GpuStatus.OUTLIVED
    elif state.problem:
        status = GpuStatus.BLOCKED
    elif not state.free:
        status = GpuStatus.HELD
    else:
        status, record = (GpuStatus.BLOCKED if foreign else GpuStatus.FREE), None
    left = [Intruder(pid=p.pid, command=p.name) for p in state.processes if state.outlived]
    return GpuUse(
        index=gpu.index,
        uuid=gpu.uuid,
        status=status,
        job=record.job if record is not None and record.job.isdigit() else "",
        task=record.task if record is not None else "",
        user=record.user if record is not None else "",
        since=record.since if record is not None else 0,
        intruders=(*left, *foreign),
    )


def for_scheduler(uses: Sequence[GpuUse], given: int = 0) -> int:
    """Return the load value ``gpu``: the number of GPUs, or of free GPUs if some are not usable.

    Grid Engine uses the smaller of this value and the number that it has not given to jobs.

    Args:
        given: Number of GPUs that the cell configures for this host; some may have failed.
    """
    kept = any(use.status in (GpuStatus.OUTLIVED, GpuStatus.BLOCKED) for use in uses)
    if kept or len(uses) < given:
        return sum(use.status is GpuStatus.FREE for use in uses)
    return len(uses)


def in_child(produce: Callable[[], str], timeout_s: float = _QUERY_S) -> str | None:
    """Return the result of ``produce()`` in a child process; None if it fails or hangs.

    A faulty driver makes its caller hang or crash, which must not happen to the sensor.
    """
    _reap()
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                pipe.write(produce())
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    try:
        data = read_all(reading, time.monotonic() + timeout_s)
    finally:
        os.close(reading)
    if data is None:
        os.kill(pid, signal.SIGKILL)
        _killed.append(pid)  # do not wait: a process inside the driver may never end
        return None
    _, status = os.waitpid(pid, 0)
    return data.decode("utf-8", "replace") if status == 0 else None


def _reap() -> None:
    """Reap killed children that have ended, so that zombies do not accumulate."""
    for pid in list(_killed):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            _killed.remove(pid)


def serve(sensor: Sensor, requests: TextIO, answers: TextIO, errors: TextIO) -> None:
    """Answer each line of ``requests`` until ``quit`` or the end of input."""
    for line in iter(requests.readline, ""):
        if line.strip() == "quit":
            return
        try:
            lines = sensor.report()
        except Exception as error:  # noqa: BLE001 (the sensor must not exit)
            errors.write(f"sge-jobs sensor: {type(error).__name__}: {error}\n")
            errors.flush()
            lines = []
        answers.write("\n".join(["begin", *lines, "end"]) + "\n")
        answers.flush()


def main() -> int:
    """Serve the execution daemon that started this program."""
    from sge_jobs.node.claim import starter  # noqa: F401 (root writes the bytecode for later jobs)

    with contextlib.suppress(BrokenPipeError):
        serve(Sensor(), sys.stdin, sys.stdout, sys.stderr)
    return 0
