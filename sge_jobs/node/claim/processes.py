"""Read /proc: processes with the additional group of a job, and running shepherds."""

from __future__ import annotations

import os

from sge_jobs.node.gpus.inventory import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

SHEPHERD = "sge_shepherd"
ROOT = 0


class Process:
    """What every user can see of a process.

    Attributes:
        started: Start time in clock ticks since boot; with the pid, it identifies a process.
        uid: Real user ID; a program with the setuid bit does not change it.
    """

    __slots__ = ("groups", "name", "parent", "pid", "started", "uid")

    def __init__(
        self,
        *,
        pid: int,
        name: str,
        parent: int,
        groups: frozenset[int],
        started: int,
        uid: int,
    ) -> None:
        self.pid = pid
        self.name = name
        self.parent = parent
        self.groups = groups
        self.started = started
        self.uid = uid

    @property
    def is_shepherd(self) -> bool:
        """Whether it is Grid Engine's: a process of a user has the name that its user chose."""
        return self.uid == ROOT and self.name.startswith(SHEPHERD)


def read_process(pid: int, proc: str = "/proc") -> Process | None:
    """Return process ``pid``; None if it does not exist or is a zombie."""
    try:
        stat = _read(f"{proc}/{pid}/stat")
        name_end = stat.rindex(b")")
        name = stat[stat.index(b"(") + 1 : name_end].decode("utf-8", "replace")
        fields = stat[name_end + 2 :].split()
        if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # no other thread runs
            return None
        status = _read(f"{proc}/{pid}/status")
        return Process(
            pid=pid, name=name, parent=int(fields[1]), started=int(fields[19]),
            groups=frozenset(map(int, _numbers(status, b"\nGroups:"))),
            uid=int(_numbers(status, b"\nUid:")[0]),
        )  # fmt: skip
    except (OSError, ValueError, IndexError):
        return None


def _numbers(status: bytes, title: bytes) -> list[bytes]:
    start = status.index(title) + len(title)
    return status[start : status.index(b"\n", start)].split()


def carriers(groups: Collection[int], proc: str = "/proc") -> dict[int, Process]:
    """Return every process that has one of ``groups``, with its ancestors, by pid.

    Takes 30 us per process of the host, without kernel threads.
    """
    if not groups:
        return {}
    found: dict[int, Process] = {}
    wanted = {str(group).encode() for group in groups}
    skip = _kernel_threads(proc)
    for entry in os.listdir(proc):
        if not entry.isdigit() or entry in skip:
            continue
        try:
            carried = _numbers(_read(f"{proc}/{entry}/status"), b"\nGroups:")
        except (OSError, ValueError):
            continue
        if not wanted.isdisjoint(carried):
            _add_with_ancestors(int(entry), found, proc)
    return found


def _add_with_ancestors(pid: int, found: dict[int, Process], proc: str) -> None:
    while pid > 0 and pid not in found:
        process = read_process(pid, proc)
        if process is None:
            return
        found[pid] = process
        pid = process.parent


def _kernel_threads(proc: str) -> set[str]:
    try:
        if _read(f"{proc}/2/comm") != b"kthreadd\n":
            return set()
        return set(read_text(f"{proc}/2/task/2/children").split())
    except OSError:
        return set()


def shepherd_of(
    process: Process | None, processes: dict[int, Process] | None = None, proc: str = "/proc"
) -> Process | None:
    """Return the nearest shepherd among ``process`` and its ancestors, or None.

    Looks up ancestors in ``processes`` if given, otherwise in /proc.
    """
    for _ in range(100):
        if process is None or process.is_shepherd:
            return process
        parent = process.parent
        process = processes.get(parent) if processes is not None else read_process(parent, proc)
    return None


def spool_of(shepherd: Process, proc: str = "/proc") -> str:
    """Return the spool directory of the job of ``shepherd``, from the kernel; else empty.

    Only root can read it. The path is ``.../active_jobs/JOB.TASK``, or ``.../JOB.TASK/PETASK`` for
    a task that a parallel job started.
    """
    try:
        directory = os.readlink(f"{proc}/{shepherd.pid}/cwd") if shepherd.is_shepherd else ""
    except OSError:
        return ""
    return directory if "/active_jobs/" in directory else ""


def job_of_spool(directory: str) -> tuple[str, str, str]:
    """Return job, task and parallel task of a spool directory; the task is 1 without an array."""
    name, _, parallel = directory.rpartition("/active_jobs/")[2].partition("/")
    job, _, task = name.partition(".")
    return (job, task, parallel) if job.isdigit() and task.isdigit() else ("", "", "")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
