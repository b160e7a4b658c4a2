"""Claim GPUs with ``flock``: one lock file per GPU, locked by the processes of the job.

The kernel releases a lock when the last process that holds it ends, for whatever reason. A leftover
process of a job can run without the lock. Therefore, a job also writes its additional group into
the file, and a GPU cannot be claimed while a process still has the group of the last job.

Every access to the locks requires another lock, ``claims``. It keeps surveys and claims apart, and
a claim of several GPUs gets all of them or none.
"""

from __future__ import annotations

import fcntl
import os
import time

from sge_jobs.node.claim import record as records
from sge_jobs.node.claim.lock_files import LockError, LockFiles, raise_descriptor, try_lock
from sge_jobs.node.claim.lock_state import LockState, is_shepherd_of, of_same_job, running_processes
from sge_jobs.node.claim.processes import Process, carriers, read_process, shepherds
from sge_jobs.node.claim.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Locks(LockFiles):
    """The locks on the GPUs of this host.

    Args:
        directory: Directory of the lock files; created if missing.
        boot: Boot ID of the kernel; records of an earlier boot are ignored.
    """

    def __init__(self, directory: str, boot: str, proc: str = "/proc") -> None:
        super().__init__(directory)
        self._boot = boot
        self._proc = proc

    def read(self, descriptor: int) -> Record | None:
        """Return the record in an open lock file; None unless this boot wrote it."""
        record = records.decode(os.pread(descriptor, records.SIZE, 0))
        return record if record is not None and record.boot == self._boot else None

    def survey(self, uuids: Sequence[str], *, tidy: bool = False) -> list[LockState]:
        """Return the state of each GPU; the caller holds the mutex.

        Args:
            tidy: Erase the records of free GPUs, because Grid Engine reuses their groups.
        """
        found = [self._inspect(uuid) for uuid in uuids]
        groups = {state.record.group for state in found if state.record and state.record.group}
        processes = carriers(groups, self._proc)
        for state in found:
            self._judge(state, processes)
            if tidy and state.free and state.record is not None:
                self._forget(state.uuid)
        return found

    def _inspect(self, uuid: str) -> LockState:
        try:
            descriptor = self.open(uuid)
        except LockError as error:
            return LockState(uuid=uuid, problem=str(error))
        try:
            held = not try_lock(descriptor, fcntl.LOCK_EX)
            shared = held and try_lock(descriptor, fcntl.LOCK_SH)
            return LockState(uuid=uuid, held=held, shared=shared, record=self.read(descriptor))
        finally:
            os.close(descriptor)

    def _judge(self, state: LockState, processes: dict[int, Process]) -> None:
        record = state.record
        if record is None or not record.shepherd:
            state.job_alive = state.held
        else:
            shepherd = read_process(record.shepherd, self._proc)
            state.job_alive = shepherd is not None and is_shepherd_of(record, shepherd)
        if record is None:
            return
        state.processes = tuple(running_processes(record, processes))
        if (
            state.shared and not state.job_alive
        ):  # the first parallel task may end before the others
            state.job_alive = any(
                of_same_job(record, shepherd) for shepherd in shepherds(self._proc)
            )

    def _forget(self, uuid: str) -> None:
        descriptor = self.lock(uuid, fcntl.LOCK_EX)
        if descriptor >= 0:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def claim(
        self, wanted: int, uuids: Sequence[str], mine: Record, *, shared: bool = False
    ) -> tuple[list[tuple[str, int]], list[LockState]]:
        """Claim ``wanted`` GPUs of ``uuids``, or none; the caller holds the mutex.

        A GPU is skipped if the job in its record still has running processes.

        Args:
            shared: Whether further tasks of the same job can join, see :meth:`join`.

        Returns:
            UUID and descriptor of each claimed GPU; if too few are free, the state of every GPU.
        """
        taken: list[tuple[str, int]] = []
        doubtful: list[tuple[str, int, Record]] = []
        for uuid in uuids:
            if len(taken) == wanted:
                break
            descriptor = self.lock(uuid, fcntl.LOCK_EX)
            if descriptor < 0:
                continue
            record = self.read(descriptor)
            if record is None or record.group in (0, mine.group):
                taken.append((uuid, descriptor))
            else:
                doubtful.append((uuid, descriptor, record))
        groups = {record.group for _, _, record in doubtful} if len(taken) < wanted else set()
        processes = carriers(groups, self._proc)
        for uuid, descriptor, record in doubtful:
            if len(taken) < wanted and not running_processes(record, processes):
                taken.append((uuid, descriptor))
            else:
                os.close(descriptor)
        if len(taken) < wanted:
            for _, descriptor in taken:
                os.close(descriptor)
            return [], self.survey(uuids)
        order = {uuid: place for place, uuid in enumerate(uuids)}
        taken.sort(key=lambda item: order[item[0]])
        return [(uuid, self._keep(descriptor, mine, shared)) for uuid, descriptor in taken], []

    def join(self, uuids: Sequence[str], mine: Record) -> list[tuple[str, int]]:
        """Return UUID and descriptor of the GPUs that other tasks of ``mine``'s job share.

        The caller holds the mutex.
        """
        joined = []
        for uuid in uuids:
            descriptor = self.lock(uuid, fcntl.LOCK_SH)
            if descriptor < 0:
                continue
            record = self.read(descriptor)
            if record is not None and record.same_job(mine):
                joined.append((uuid, raise_descriptor(descriptor)))
            else:
                os.close(descriptor)
        return joined

    def _keep(self, descriptor: int, mine: Record, shared: bool) -> int:
        os.pwrite(descriptor, records.encode(mine), 0)
        os.ftruncate(descriptor, records.SIZE)
        if shared:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        return raise_descriptor(descriptor)


def wait_and_claim(
    attempt: Callable[[], tuple[list[tuple[str, int]], list[LockState]]], seconds: float
) -> tuple[list[tuple[str, int]], list[LockState]]:
    """Call ``attempt`` until it claims GPUs: every 50 ms, or 0.5 s with leftover processes."""
    until = time.monotonic() + seconds
    while True:
        taken, states = attempt()
        if taken or time.monotonic() >= until:
            return taken, states
        time.sleep(0.5 if any(state.processes for state in states) else 0.05)
