"""Load sensor of the execution daemon: update the list of GPUs and report who uses each.

For each line on standard input, it prints values of the host: ``gpu``, the number of GPUs for which
the scheduler can send jobs, ``gpu_state``, see :mod:`sge_jobs.gpu_state`, and ``gpu_fault``, see
:mod:`sge_jobs.node.rotation`. It exits on ``quit`` or the end of input.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TextIO

from sge_jobs import gpu_state
from sge_jobs.gpu_state import Intruder
from sge_jobs.node.child import in_child
from sge_jobs.node.claim.attendant import AttendantProcess
from sge_jobs.node.claim.lock_files import DIRECTORY
from sge_jobs.node.claim.lock_state import LockState
from sge_jobs.node.claim.locks import Held, Locks
from sge_jobs.node.claim.run_directory import LockError
from sge_jobs.node.claim.upgrade import remove_old
from sge_jobs.node.devices import RESTRICTED, RESTRICTING, DeviceRule
from sge_jobs.node.gpus import cell_counts, detect, inventory, topology
from sge_jobs.node.mps import Mps
from sge_jobs.node.mps_daemons import end_unused, has_daemon, start_missing
from sge_jobs.node.rotation import COMPLEX, KEPT, Rotation, check_host
from sge_jobs.node.strays import tell_strays
from sge_jobs.node.uses import for_scheduler, intruders, shares_left, use_of

_FIND_AGAIN_S = 20.0
_ASK_AGAIN_S = 300.0
_LINK_AGAIN_S = 300.0
_MUTEX_S = 5.0


class Sensor:
    """Reports the GPUs, and keeps their list between reports.

    Args:
        host: Name of the host that the execution daemon expects.
        cache: File with the list of GPUs, which starters read.
        declared: File in which an administrator declares GPUs.
        directory: Directory of the files of the GPUs.
        check: Returns why jobs cannot get GPUs; empty if they can.
        devices: Whether and how the device files of the GPUs are restricted.
        mps: The MPS daemons of this host.
    """

    def __init__(
        self,
        *,
        host: str = "",
        cache: str = inventory.CACHE,
        declared: str = inventory.DECLARED,
        directory: str = DIRECTORY,
        check: Callable[[], str] = check_host,
        devices: DeviceRule | None = None,
        mps: Mps | None = None,
    ) -> None:
        self.host = host or os.environ.get("HOST", "") or socket.gethostname()
        self._cache, self._declared, self._directory = cache, declared, directory
        self._mps = mps or Mps()
        self._boot = inventory.boot_id()
        self._found: inventory.Inventory | None = None
        self._find_at = self._ask_at = self._link_at = 0.0
        self._links: dict[str, str] = {}
        self._complex, self._given = cell_counts.GpuComplex(), 0
        self._devices = devices or DeviceRule()
        self._rotation = Rotation(self.host, lambda: self._devices.problem or check())
        self._reports_faults = False

    def report(self) -> list[str]:
        """Return the lines between ``begin`` and ``end``, and update the cache and the locks."""
        known = self._inventory()
        states = self._survey(known) if known.gpus else []
        daemons = self._daemons(states)
        foreign = self._foreign(known, states)
        uses = [
            use_of(gpu, state, foreign.get(gpu.uuid, ()), has_daemon=has_daemon(daemons, state))
            for gpu, state in zip(known.gpus, states)  # noqa: B905 (Python 3.9 has no strict)
        ]
        by_uuid = {
            use.uuid: [process.pid for process in use.intruders if process.foreign] for use in uses
        }
        tell_strays(self.host, uses)
        blocked = {uuid: pids for uuid, pids in by_uuid.items() if pids}
        self._write(known, blocked)
        lines = [f"{self.host}:gpu_state:{gpu_state.encode(uses)}"]
        if self._reports_faults:
            if known.gpus or (self._given and self._rotation.fault is None):
                self._rotation.look()
            lines.append(f"{self.host}:{COMPLEX}:{self._rotation.word()}")
        if self._complex.consumable in ("", "YES", "JOB"):
            is_out = self._reports_faults and self._rotation.is_out
            usable = 0 if is_out else for_scheduler(uses, self._given)
            may_share = self._mps.program and not is_out
            lines.insert(0, f"{self.host}:gpu:{usable}")
            lines.insert(1, f"{self.host}:gpu_share:{shares_left(uses) if may_share else 0}")
        return lines

    def _daemons(self, states: Sequence[LockState]) -> set[tuple[str, int]]:
        """Restart MPS daemons that ended; return those that ran before."""
        running = self._mps.running()
        for problem in start_missing(self._mps, states, running):
            _complain(sys.stderr, problem)
        return running

    def _inventory(self) -> inventory.Inventory:
        if self._found is None or time.monotonic() >= self._find_at:
            found = in_child(lambda: inventory.encode(detect.detect(self._declared), self._boot))
            fresh = inventory.decode(found, self._boot) if found is not None else None
            if fresh is not None:
                self._find_links(fresh)
                self._found = fresh
            elif self._found is None:
                self._found = inventory.Inventory(source="none", gpus=())
            self._ask()
            self._find_at = time.monotonic() + _FIND_AGAIN_S
        return self._found

    def _find_links(self, found: inventory.Inventory) -> None:
        """Find how the GPUs are connected if they have changed, or some time has passed.

        NVSwitches connect GPUs only after their service has started.
        """
        same = self._found is not None and found.uuids == self._found.uuids
        if same and time.monotonic() < self._link_at:
            return

        def cache() -> str:
            rows = topology.find_links(found, self._declared).rows
            return inventory.encode(inventory.Inventory(source="", gpus=(), links=rows), self._boot)

        decoded = inventory.decode(in_child(cache) or "", self._boot)
        self._links = {} if decoded is None else decoded.links
        self._link_at = time.monotonic() + _LINK_AGAIN_S

    def _ask(self) -> None:
        """Query the master how the cell counts GPUs, and how many it configures for this host."""
        if self._complex.consumable and time.monotonic() < self._ask_at:
            return
        remove_old()
        if complexes := cell_counts.complexes():
            self._complex = cell_counts.parse_gpu_complex(complexes)
            shortcut = cell_counts.shortcut_of(complexes, COMPLEX)
            self._reports_faults, self._rotation.stays = bool(shortcut), shortcut == KEPT
            state_word = cell_counts.shortcut_of(complexes, RESTRICTING)
            self._devices.wanted = state_word == RESTRICTED
        if self._found is not None and self._found.gpus:
            self._given = cell_counts.given_gpus(self.host) or self._given
        self._ask_at = time.monotonic() + _ASK_AGAIN_S

    def _write(self, known: inventory.Inventory, blocked: Mapping[str, Sequence[int]]) -> None:
        fresh = inventory.Inventory(
            source=known.source, gpus=known.gpus, per_slot=self._complex.per_slot,
            chosen=self._complex.chosen, closed=self._devices.closed, blocked=blocked,
            links=self._links,
        )  # fmt: skip
        text = inventory.encode(fresh, self._boot)
        with contextlib.suppress(OSError):
            if inventory.read_text(self._cache) == text:
                return
        os.makedirs(os.path.dirname(self._cache), mode=0o755, exist_ok=True)
        inventory.write_whole(self._cache, text)

    def _survey(self, known: inventory.Inventory) -> list[LockState]:
        try:
            with Held(Locks(self._directory, self._boot), _MUTEX_S) as locks:
                states = locks.survey(known.uuids)
                end_unused(self._mps, states)
                self._devices.apply(states)
                return states
        except LockError as error:
            return [LockState(uuid=uuid, problem=str(error)) for uuid in known.uuids]

    def _foreign(
        self, known: inventory.Inventory, states: Sequence[LockState]
    ) -> dict[str, tuple[Intruder, ...]]:
        if known.source == "none":
            return {}
        text = in_child(lambda: "\n".join(f"{p.uuid},{p.pid},{p.name}" for p in detect.processes()))
        return intruders(detect.parse_smi_processes(text), states) if text else {}


def serve(sensor: Sensor, requests: Iterable[str], answers: TextIO, errors: TextIO) -> None:
    """Answer each line of ``requests`` until ``quit`` or the end of input."""
    for line in requests:
        if line.strip() == "quit":
            return
        try:
            lines = sensor.report()
        except Exception as error:  # noqa: BLE001 (the sensor must not exit)
            _complain(errors, error)
            lines = []
        answers.write("\n".join(["begin", *lines, "end"]) + "\n")
        answers.flush()


def _complain(errors: TextIO, error: Exception | str) -> None:
    what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    errors.write(f"sge-jobs sensor: {what}\n")
    errors.flush()


def main() -> int:
    """Serve the execution daemon that started this program."""
    from sge_jobs.node.claim import starter  # noqa: F401 (root writes the bytecode for later jobs)

    attendant = AttendantProcess()

    def requests() -> Iterator[str]:
        attendant.ensure()
        for line in iter(sys.stdin.readline, ""):
            attendant.ensure()
            yield line

    with contextlib.suppress(BrokenPipeError):
        serve(Sensor(), requests(), sys.stdout, sys.stderr)
    return 0
