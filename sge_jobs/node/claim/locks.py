"""Claim GPUs: write the job into the files of its GPUs.

A GPU belongs to the jobs in its file as long as their shepherds run or processes have the
additional group of such a job. Nothing releases a GPU: the kernel knows which processes run. So a
GPU is free when the job's processes are gone, whatever was killed in which order.

Every access to the files requires the mutex, which the kernel releases when its holder ends. A job
never waits while it has a part of its GPUs, so jobs that want several do not block each other.
"""

from __future__ import annotations

import os
import time

from sge_jobs.node.claim.lock_files import LockFiles
from sge_jobs.node.claim.lock_state import LockState, is_running, running_processes
from sge_jobs.node.claim.packing import choose
from sge_jobs.node.claim.processes import Process, carriers
from sge_jobs.node.claim.record import WHOLE, Record
from sge_jobs.node.claim.run_directory import LockError
from sge_jobs.node.gpus.links import Links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class Locks(LockFiles):
    """The jobs that have the GPUs of this host.

    Args:
        directory: Directory of the files; created if missing.
        boot: Boot ID of the kernel; records of an earlier boot are ignored.
    """

    def __init__(self, directory: str, boot: str, proc: str = "/proc") -> None:
        super().__init__(directory)
        self._boot = boot
        self._proc = proc

    def survey(self, uuids: Sequence[str]) -> list[LockState]:
        """Return the state of each GPU, and erase the records of ended jobs without processes.

        The caller holds the mutex.
        """
        found: list[tuple[str, list[Record], str]] = []
        for uuid in uuids:
            try:
                found.append((uuid, self.read(uuid), ""))
            except LockError as error:
                found.append((uuid, [], str(error)))
        records = {record.identity: record for _, held, _ in found for record in held}
        running = {
            identity
            for identity, record in records.items()
            if record.boot == self._boot and is_running(record, self._proc)
        }
        left = {
            identity: record
            for identity, record in records.items()
            if record.boot == self._boot and identity not in running
        }
        processes = carriers({record.group for record in left.values() if record.group}, self._proc)
        leftover = {key: running_processes(record, processes) for key, record in left.items()}
        return [self._state(uuid, held, running, leftover, what) for uuid, held, what in found]

    def _state(
        self,
        uuid: str,
        held: Sequence[Record],
        running: set[tuple[int, int]],
        leftover: dict[tuple[int, int], list[Process]],
        problem: str,
    ) -> LockState:
        valid = [
            record for record in held if record.identity in running or leftover.get(record.identity)
        ]
        if len(valid) < len(held):
            self.write(uuid, valid)
        ended = [record for record in valid if record.identity not in running]
        return LockState(
            uuid=uuid,
            holders=valid,
            ended=ended,
            processes=[process for record in ended for process in leftover[record.identity]],
            problem=problem,
        )

    def claim(
        self, wanted: int, uuids: Sequence[str], mine: Record, links: Links | None = None
    ) -> tuple[list[str], list[LockState]]:
        """Claim ``wanted`` GPUs of ``uuids``, or a share of one; the caller holds the mutex.

        A job that already has GPUs keeps these. Of the free GPUs, it gets those with the best
        ``links`` between them.

        Returns:
            UUID of each claimed GPU; if too few are free, none and the state of every GPU.
        """
        states = self.survey(uuids)
        taken = [state.uuid for state in states if _has(state, mine)]
        if taken:
            return taken, states
        shared = choose(states, mine) if mine.share < WHOLE else None
        if shared is not None and not shared.free:
            taken = [shared.uuid]
        else:
            free = [state.uuid for state in states if state.free]
            taken = (links or Links()).choose(free, wanted)
        if not taken:
            return [], states
        self.give(taken, states, mine)
        return taken, states

    def join(self, uuids: Sequence[str], mine: Record) -> list[str]:
        """Share the GPUs that other tasks of ``mine``'s job have; the caller holds the mutex.

        Returns:
            UUID of each of them.
        """
        states = self.survey(uuids)
        taken = [
            state.uuid for state in states if any(record.same_job(mine) for record in state.running)
        ]
        new = [state.uuid for state in states if state.uuid in taken and not _has(state, mine)]
        self.give(new, states, mine)
        return taken

    def give(self, uuids: Sequence[str], states: Sequence[LockState], mine: Record) -> None:
        """Add ``mine`` to the files of ``uuids``, whose ``states`` are known: to all or none."""
        holders = {state.uuid: [*state.holders, mine] for state in states if state.uuid in uuids}
        self.write_all(holders, mine)


class Held:
    """Hold the mutex of ``locks``, and close them at the end.

    Raises:
        LockError: Another process held the mutex for ``seconds``.
    """

    def __init__(self, locks: Locks, seconds: float) -> None:
        self._locks, self._seconds = locks, seconds
        self._mutex = -1

    def __enter__(self) -> Locks:
        try:
            self._mutex = self._locks.mutex(time.monotonic() + self._seconds)
            if self._mutex < 0:
                raise LockError(f"another process of root locked 'claims' for {self._seconds:g} s")
        except BaseException:
            self._locks.close()
            raise
        return self._locks

    def __exit__(self, *_: object) -> None:
        os.close(self._mutex)
        self._locks.close()


def _has(state: LockState, mine: Record) -> bool:
    return any(record.identity == mine.identity for record in state.running)
