"""Find the spool directories of jobs and parallel tasks that started, often and cheaply."""

from __future__ import annotations

import os
import time

from sge_jobs.node.claim.processes import Process, read_process, spool_of
from sge_jobs.node.gpus.inventory import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SETTLED_NS = 1_000_000_000


class Spools:
    """The spool directories below ``active``; empty for none.

    A directory is read again only after it changed, and a job is looked at until :meth:`forget`.
    """

    def __init__(self, active: str) -> None:
        self._active = active
        self._listed: dict[str, tuple[int, list[str]]] = {}
        self._forgotten: dict[str, tuple[int, int]] = {}

    def started(self) -> Iterator[tuple[str, Process]]:
        """Yield spool directory and shepherd of each job that was not forgotten."""
        jobs = self._directories(self._active)
        spools = [spool for job in jobs for spool in (job, *self._directories(job))]
        self._listed = {
            path: known for path, known in self._listed.items() if path in {self._active, *jobs}
        }
        self._forgotten = {
            spool: run for spool, run in self._forgotten.items() if spool in set(spools)
        }
        for spool in spools:
            if self._forgotten.get(spool) != _run(spool):
                shepherd = _shepherd_in(spool)
                if shepherd is not None:
                    yield spool, shepherd

    def forget(self, spool: str) -> None:
        """Skip the job of ``spool`` from now on; not the next job in the same directory."""
        run = _run(spool)
        if run is not None:
            self._forgotten[spool] = run

    def _directories(self, path: str) -> list[str]:
        try:
            changed = os.stat(path).st_mtime_ns
            if path in self._listed and self._listed[path][0] == changed:
                return self._listed[path][1]
            with os.scandir(path) as entries:
                found = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        if abs(time.time_ns() - changed) > _SETTLED_NS:  # clocks of file systems are coarse
            self._listed[path] = changed, found
        return found


def _run(spool: str) -> tuple[int, int] | None:
    """Return what identifies this run of the job: its file ``pid``."""
    try:
        status = os.stat(f"{spool}/pid")
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _shepherd_in(spool: str) -> Process | None:
    try:
        pid = read_text(f"{spool}/pid").strip()
    except OSError:
        return None
    shepherd = read_process(int(pid)) if pid.isdigit() else None
    return shepherd if shepherd is not None and spool_of(shepherd) == spool else None
