"""Read /proc: processes with the additional group of a job, and running shepherds."""

from __future__ import annotations

import os

from sge_jobs.node.gpus.inventory import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

SHEPHERD = "sge_shepherd"


class Process:
    """What every user can see of a process.

    Attributes:
        started: Start time in clock ticks since boot; with the pid, it identifies a process.
    """

    __slots__ = ("groups", "name", "parent", "pid", "started")

    def __init__(
        self, *, pid: int, name: str, parent: int, groups: frozenset[int], started: int
    ) -> None:
        self.pid = pid
        self.name = name
        self.parent = parent
        self.groups = groups
        self.started = started


def read_process(pid: int, proc: str = "/proc") -> Process | None:
    """Return process ``pid``; None if it does not exist or is a zombie."""
    try:
        stat = _read(f"{proc}/{pid}/stat")
        name_end = stat.rindex(b")")
        name = stat[stat.index(b"(") + 1 : name_end].decode("utf-8", "replace")
        fields = stat[name_end + 2 :].split()
        if fields[0] in (b"Z", b"X") and int(fields[17]) <= 1:  # no other thread runs
            return None
        groups = frozenset(map(int, _groups(_read(f"{proc}/{pid}/status"))))
        return Process(
            pid=pid, name=name, parent=int(fields[1]), groups=groups,
            started=int(fields[19]),
        )  # fmt: skip
    except (OSError, ValueError, IndexError):
        return None


def _groups(status: bytes) -> list[bytes]:
    start = status.index(b"\nGroups:") + 8
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
            carried = _groups(_read(f"{proc}/{entry}/status"))
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


def shepherds(proc: str = "/proc") -> list[Process]:
    """Return every shepherd of the host."""
    found = []
    skip = _kernel_threads(proc)
    for entry in os.listdir(proc):
        if entry.isdigit() and entry not in skip:
            process = read_process(int(entry), proc)
            if process is not None and process.name.startswith(SHEPHERD):
                found.append(process)
    return found


def shepherd_of(
    process: Process | None, processes: dict[int, Process] | None = None, proc: str = "/proc"
) -> Process | None:
    """Return the nearest shepherd among ``process`` and its ancestors, or None.

    Looks up ancestors in ``processes`` if given, otherwise in /proc.
    """
    for _ in range(100):
        if process is None or process.name.startswith(SHEPHERD):
            return process
        parent = process.parent
        process = processes.get(parent) if processes is not None else read_process(parent, proc)
    return None


def job_of_shepherd(process: Process, proc: str = "/proc") -> tuple[str, str]:
    """Return job and task of shepherd ``process``; the task is 1 for a job that is not an array.

    Only root can read them. Both are empty for other users, and if ``process`` is not a shepherd.
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
