"""One lock file a GPU: ``flock`` held by the job's processes says whose the GPU is.

The kernel frees a lock when the last process that holds it ends, however it ends. Some processes
outlive their job without the lock, so a job also leaves its additional group in the file: a GPU
whose last job's group is still carried by a process is not given away.

Every look at a lock happens under one further lock, ``claims``, so that no look disturbs a claim
and a claim of several GPUs gets all of them or none.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from sge_jobs.node.claim import record as records
from sge_jobs.node.claim.processes import (
    Process,
    carriers,
    job_of_shepherd,
    read_process,
    shepherd_of,
    shepherds,
)
from sge_jobs.node.claim.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HIGH_DESCRIPTOR = 200
"""Scripts use the small descriptors themselves, and bash 255."""

_CLAIMS = "claims"
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LockError(Exception):
    """The directory or a lock file cannot be used."""


class State:
    """What is known of one GPU's lock.

    Attributes:
        held: Whether some process holds the lock.
        shared: Whether tasks of a parallel job hold it together.
        record: Who took it last; None when nobody is known.
        job_alive: Whether the job of the record still runs.
        processes: Of the record's job, those that live.
        problem: Why the lock file cannot be used; empty for a good one.
    """

    __slots__ = ("held", "job_alive", "problem", "processes", "record", "shared", "uuid")

    def __init__(
        self,
        *,
        uuid: str,
        held: bool = False,
        shared: bool = False,
        record: Record | None = None,
        job_alive: bool = False,
        processes: Sequence[Process] = (),
        problem: str = "",
    ) -> None:
        self.uuid = uuid
        self.held = held
        self.shared = shared
        self.record = record
        self.job_alive = job_alive
        self.processes = tuple(processes)
        self.problem = problem

    @property
    def free(self) -> bool:
        """Whether a job may have the GPU."""
        return not self.held and not self.processes and not self.problem

    @property
    def outlived(self) -> bool:
        """Whether processes keep the GPU though their job is over."""
        return not self.free and not self.job_alive and not self.problem and bool(self.record)


def default_directory() -> str:
    """Return where lock files are: in memory, writable for all, and the same for every job."""
    try:
        mode = os.stat("/run/lock").st_mode
    except OSError:
        mode = 0
    shared = stat.S_ISVTX | stat.S_IWOTH
    return "/run/lock/sge_jobs" if mode & shared == shared else "/dev/shm/sge_jobs"  # noqa: S108 (made without following links)


class Locks:
    """The lock files of this host.

    Args:
        directory: Where they are; made when it is not there.
        boot: Identity of the kernel's run: a record of an earlier one counts for nothing.
    """

    def __init__(self, directory: str, boot: str, proc: str = "/proc") -> None:
        self._path = directory
        self._boot = boot
        self._proc = proc
        self._directory = _open_directory(directory)

    def close(self) -> None:
        """Close the directory; locks stay as they are."""
        os.close(self._directory)

    def own(self) -> None:
        """Take the directory and its files over for root, so that no user can remove a lock."""
        if os.getuid() != 0:
            return
        os.fchown(self._directory, 0, 0)
        os.fchmod(self._directory, 0o1777)
        for name in os.listdir(self._directory):
            try:  # noqa: SIM105 (importing contextlib takes the starter 4 ms)
                self._own_file(name)
            except OSError:
                pass

    def _own_file(self, name: str) -> None:
        status = os.stat(name, dir_fd=self._directory, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            return
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.unlink(name, dir_fd=self._directory)
            return
        descriptor = os.open(name, _OPEN, dir_fd=self._directory)
        try:
            status = os.fstat(descriptor)  # the name may be another file's by now
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                os.fchown(descriptor, 0, 0)
                os.fchmod(descriptor, 0o666)
        finally:
            os.close(descriptor)

    def mutex(self, until: float) -> int:
        """Return the descriptor of the lock on all claims; -1 when not free by ``until``."""
        descriptor = self.open(_CLAIMS)
        while True:
            if _try_lock(descriptor, fcntl.LOCK_EX):
                return descriptor
            if time.monotonic() >= until:
                os.close(descriptor)
                return -1
            time.sleep(0.005)

    def open(self, name: str) -> int:
        """Return a descriptor of lock file ``name``, made when it is not there.

        Raises:
            LockError: It is a link, no plain file, or closed to this user.
        """
        for _ in range(10):
            try:
                descriptor = self._open_or_make(name)
            except FileExistsError:
                continue
            except OSError as error:
                raise LockError(f"{self._path}/{name}: {error.strerror}") from error
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                os.close(descriptor)
                raise LockError(f"{self._path}/{name} is no plain file")
            if status.st_nlink == 1:
                return descriptor
            os.close(descriptor)
        raise LockError(f"{self._path}/{name} comes and goes")

    def _open_or_make(self, name: str) -> int:
        # fs.protected_regular refuses O_CREAT on another user's file in a sticky directory.
        try:
            return os.open(name, _OPEN, dir_fd=self._directory)
        except FileNotFoundError:
            before = os.umask(0)
            try:
                flags = _OPEN | os.O_CREAT | os.O_EXCL
                return os.open(name, flags, 0o666, dir_fd=self._directory)
            finally:
                os.umask(before)

    def read(self, descriptor: int) -> Record | None:
        """Return the record of this boot in an open lock file."""
        record = records.decode(os.pread(descriptor, records.SIZE, 0))
        return record if record is not None and record.boot == self._boot else None

    def survey(self, uuids: Sequence[str], *, tidy: bool = False) -> list[State]:
        """Return the state of each GPU; the caller holds the mutex.

        Args:
            tidy: Empty the records of free GPUs, so that a group used again is not mistaken.
        """
        found = [self._look(uuid) for uuid in uuids]
        groups = {state.record.group for state in found if state.record and state.record.group}
        processes = carriers(groups, self._proc)
        for state in found:
            self._judge(state, processes)
            if tidy and state.free and state.record is not None:
                self._forget(state.uuid)
        return found

    def _look(self, uuid: str) -> State:
        try:
            descriptor = self.open(uuid)
        except LockError as error:
            return State(uuid=uuid, problem=str(error))
        try:
            held = not _try_lock(descriptor, fcntl.LOCK_EX)
            shared = held and _try_lock(descriptor, fcntl.LOCK_SH)
            return State(uuid=uuid, held=held, shared=shared, record=self.read(descriptor))
        finally:
            os.close(descriptor)

    def _judge(self, state: State, processes: dict[int, Process]) -> None:
        record = state.record
        if record is None or not record.shepherd:
            state.job_alive = state.held
        else:
            shepherd = read_process(record.shepherd, self._proc)
            state.job_alive = shepherd is not None and _is_of(record, shepherd)
        if record is None:
            return
        state.processes = tuple(survivors(record, processes))
        if state.shared and not state.job_alive:  # of parallel tasks the first may end first
            state.job_alive = any(of_same_job(record, one) for one in shepherds(self._proc))

    def _forget(self, uuid: str) -> None:
        descriptor = self._lock(uuid, fcntl.LOCK_EX)
        if descriptor >= 0:
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def claim(
        self, wanted: int, uuids: Sequence[str], mine: Record, *, shared: bool = False
    ) -> tuple[list[tuple[str, int]], list[State]]:
        """Take ``wanted`` GPUs of ``uuids``, or none; the caller holds the mutex.

        A GPU whose record names a job with living processes is left alone.

        Args:
            shared: Further tasks of the same job may join, see :meth:`join`.

        Returns:
            UUID and descriptor of each GPU taken, and, when they are too few, the state of all.
        """
        taken: list[tuple[str, int]] = []
        doubtful: list[tuple[str, int, Record]] = []
        for uuid in uuids:
            if len(taken) == wanted:
                break
            descriptor = self._lock(uuid, fcntl.LOCK_EX)
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
            if len(taken) < wanted and not survivors(record, processes):
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
        """Return UUID and descriptor of the GPUs that another task of ``mine``'s job shares.

        The caller holds the mutex.
        """
        joined = []
        for uuid in uuids:
            descriptor = self._lock(uuid, fcntl.LOCK_SH)
            if descriptor < 0:
                continue
            record = self.read(descriptor)
            if record is not None and record.same_job(mine):
                joined.append((uuid, _raise_descriptor(descriptor)))
            else:
                os.close(descriptor)
        return joined

    def _lock(self, uuid: str, kind: int) -> int:
        try:
            descriptor = self.open(uuid)
        except LockError:
            return -1
        if _try_lock(descriptor, kind) and os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)
        return -1

    def _keep(self, descriptor: int, mine: Record, shared: bool) -> int:
        os.pwrite(descriptor, records.encode(mine), 0)
        os.ftruncate(descriptor, records.SIZE)
        if shared:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        return _raise_descriptor(descriptor)


def survivors(record: Record, processes: dict[int, Process]) -> list[Process]:
    """Return the living processes of the job in ``record``.

    Grid Engine uses a group again once its job is over: a process below another job's shepherd, or
    one that began after that shepherd, is not this job's.
    """
    if record.group <= 0:
        return []
    found = [process for process in processes.values() if record.group in process.groups]
    found.sort(key=lambda process: (process.started, process.pid))
    others = {}
    for process in found:
        shepherd = shepherd_of(process, processes)
        if shepherd is not None and not _is_of(record, shepherd):
            others[process.pid] = shepherd.started
    newer = min(others.values(), default=None)
    return [
        process
        for process in found
        if process.pid not in others and (newer is None or process.started < newer)
    ]


def of_same_job(record: Record, shepherd: Process, proc: str = "/proc") -> bool:
    """Whether ``shepherd`` watches the job of ``record``, or one of its parallel tasks."""
    return job_of_shepherd(shepherd, proc) == (record.job, record.task or "1")


def _is_of(record: Record, shepherd: Process) -> bool:
    return (shepherd.pid, shepherd.started) == (record.shepherd, record.shepherd_started)


def wait_and_claim(
    attempt: Callable[[], tuple[list[tuple[str, int]], list[State]]], seconds: float
) -> tuple[list[tuple[str, int]], list[State]]:
    """Call ``attempt`` until it takes GPUs, every 50 ms; every 0.5 s where survivors are."""
    until = time.monotonic() + seconds
    while True:
        taken, states = attempt()
        if taken or time.monotonic() >= until:
            return taken, states
        time.sleep(0.5 if any(state.processes for state in states) else 0.05)


def _open_directory(path: str) -> int:
    before = os.umask(0)
    try:
        os.mkdir(path, 0o1777)
    except FileExistsError:
        pass
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from error
    finally:
        os.umask(before)
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise LockError(f"{path}: {error.strerror}") from error


def _try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True


def _raise_descriptor(descriptor: int) -> int:
    try:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD, HIGH_DESCRIPTOR)
    except OSError:
        os.set_inheritable(descriptor, True)
        return descriptor
    os.close(descriptor)
    return high
