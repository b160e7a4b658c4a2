"""Take over the GPUs of jobs that an earlier version started, and remove its files.

That version locked a file per GPU with ``flock``, in a directory that all users can write. A lock
is believed only if it is held by a process of a running job that requested GPUs and has none, and
for no more GPUs than it requested.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time

from sge_jobs.node.claim.locks import Locks
from sge_jobs.node.claim.processes import (
    Process,
    job_of_spool,
    read_process,
    shepherd_of,
    spool_of,
)
from sge_jobs.node.claim.record import Record
from sge_jobs.node.claim.request import only_value, query_request
from sge_jobs.node.gpus.inventory import boot_id, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OLD = ("/run/lock/sge_jobs", "/dev/shm/sge_jobs")  # noqa: S108 (opened without following links)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def adopt(
    locks: Locks, uuids: Sequence[str], environment: Mapping[str, str], old: Sequence[str] = OLD
) -> None:
    """Write the jobs that hold locks of the earlier version into ``locks``; the mutex is held.

    Raises:
        QueryFailed: The master does not answer.
    """
    held: dict[tuple[int, int], tuple[Process, list[str]]] = {}
    for directory in old:
        for uuid, shepherd in _holders(directory, uuids):
            one = shepherd.pid, shepherd.started
            held.setdefault(one, (shepherd, []))[1].append(uuid)
    for key, (shepherd, names) in held.items():
        spool = spool_of(shepherd)
        job, task, parallel = job_of_spool(spool)
        request = query_request(job, environment)
        config = read_text(f"{spool}/config", 1 << 22)
        slots = int(only_value(config, "host_slots") or "1") if request.parallel else 1
        states = locks.survey(uuids)
        if any(record.identity == key for state in states for record in state.holders):
            continue
        mine = Record(
            job=job, task=task if request.array else "", parallel=parallel, user=request.owner,
            boot=boot_id(), since=int(time.time()), group=int(only_value(config, "add_grp_id")),
            shepherd=shepherd.pid, shepherd_started=shepherd.started,
        )  # fmt: skip
        locks.give(names[: request.gpus * slots], states, mine)


def _holders(directory: str, uuids: Sequence[str]) -> list[tuple[str, Process]]:
    """Return each GPU whose file in ``directory`` a process of a job has locked."""
    pids = _pids_by_file()
    found = []
    for uuid in uuids:
        status = _status(directory, uuid)
        for pid in pids.get(status, ()) if status is not None else ():
            shepherd = shepherd_of(read_process(pid))
            if shepherd is not None and spool_of(shepherd):
                found.append((uuid, shepherd))
    return found


def _pids_by_file() -> dict[tuple[int, int, int], list[int]]:
    """Return the processes with a ``flock``, by major, minor and inode of the file."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for line in read_text("/proc/locks", 1 << 24).split("\n"):
        words = line.split()
        if len(words) == 8 and words[1] == "FLOCK" and words[4].isdigit():
            major, minor, inode = words[5].split(":")
            found.setdefault((int(major, 16), int(minor, 16), int(inode)), []).append(int(words[4]))
    return found


def _status(directory: str, name: str) -> tuple[int, int, int] | None:
    try:
        folder = os.open(directory, _DIRECTORY)
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)
    except OSError:
        return None
    return os.major(status.st_dev), os.minor(status.st_dev), status.st_ino


def remove_old(old: Sequence[str] = OLD) -> None:
    """Remove the directories of the earlier version that no process uses."""
    for directory in old:
        try:
            folder = os.open(directory, _DIRECTORY)
        except OSError:
            continue
        try:
            names = os.listdir(folder)
            if any(_is_locked(folder, name) for name in names):
                continue
            for name in names:
                os.unlink(name, dir_fd=folder)
            os.rmdir(directory)
        except OSError:  # a user keeps something in it, which harms nobody
            continue
        finally:
            os.close(folder)


def _is_locked(folder: int, name: str) -> bool:
    try:
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except OSError:  # a link, for example
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
