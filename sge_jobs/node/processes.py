"""One pass over /proc: which processes carry a job's group, which shepherds live."""

from __future__ import annotations

import os

SHEPHERD = "sge_shepherd"


class Process:
    """One process, as far as everybody may see it.

    Attributes:
        started: Clock ticks since boot; with the pid it names a process for good.
    """

    __slots__ = ("groups", "name", "parent", "pid", "started", "uid")

    def __init__(
        self, *, pid: int, name: str, parent: int, uid: int, groups: frozenset[int], started: int
    ) -> None:
        self.pid = pid
        self.name = name
        self.parent = parent
        self.uid = uid
        self.groups = groups
        self.started = started


def read_process(pid: int, proc: str = "/proc") -> Process | None:
    """Return process ``pid``; None when it is gone or a zombie."""
    try:
        stat = _read(f"{proc}/{pid}/stat")
        name_end = stat.rindex(b")")
        name = stat[stat.index(b"(") + 1 : name_end].decode("utf-8", "replace")
        fields = stat[name_end + 2 :].split()
        if fields[0] in (b"Z", b"X"):
            return None
        groups, uid = _groups_and_uid(_read(f"{proc}/{pid}/status"))
        return Process(
            pid=pid, name=name, parent=int(fields[1]), uid=uid, groups=groups,
            started=int(fields[19]),
        )  # fmt: skip
    except (OSError, ValueError, IndexError):
        return None


def _groups_and_uid(status: bytes) -> tuple[frozenset[int], int]:
    start = status.index(b"\nGroups:") + 8
    groups = frozenset(map(int, status[start : status.index(b"\n", start)].split()))
    start = status.index(b"\nUid:") + 5
    return groups, int(status[start : status.index(b"\n", start)].split()[0])


def all_processes(proc: str = "/proc") -> dict[int, Process]:
    """Return every process that is no zombie, by pid; kernel threads are left out."""
    found = {}
    for entry in os.listdir(proc):
        if entry.isdigit():
            process = read_process(int(entry), proc)
            if process is not None and process.parent != 2 and process.pid != 2:
                found[process.pid] = process
    return found


def carriers(processes: dict[int, Process], group: int) -> list[Process]:
    """Return the processes with supplementary group ``group``, oldest first."""
    found = [process for process in processes.values() if group in process.groups]
    return sorted(found, key=lambda process: (process.started, process.pid))


def shepherd_of(
    process: Process | None, processes: dict[int, Process] | None = None, proc: str = "/proc"
) -> Process | None:
    """Return the nearest shepherd above ``process``, or None.

    With ``processes`` it looks only there, without it asks /proc step by step.
    """
    for _ in range(100):
        if process is None or process.name.startswith(SHEPHERD):
            return process
        parent = process.parent
        process = processes.get(parent) if processes is not None else read_process(parent, proc)
    return None


def job_of_shepherd(process: Process, proc: str = "/proc") -> tuple[str, str]:
    """Return job and task of shepherd ``process``; the task is 1 for a job that is no array.

    Only root can see it; both are empty for others, and for another process.
    """
    if not process.name.startswith(SHEPHERD):
        return "", ""
    try:
        directory = os.readlink(f"{proc}/{process.pid}/cwd")
    except OSError:
        return "", ""
    job, _, task = directory.partition("/active_jobs/")[2].partition("/")[0].partition(".")
    return job, task


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
