"""Assign GPUs to each job that starts on this host, as root.

Grid Engine gives a job its spool directory before it starts the job's first process, the starter,
which waits for the answer in that directory. This process watches for new directories. A prolog
of the queue could not do this: Grid Engine runs none for the tasks of a parallel job, kills that of
a ``qrsh`` job, and puts the queue into the error state if one is killed.
"""

from __future__ import annotations

import os
import sys
import time

from sge_jobs.node.claim.answer import read_answer, write_answer
from sge_jobs.node.claim.assignment import Assignment, NodeSettings
from sge_jobs.node.claim.locks import Held, Locks
from sge_jobs.node.claim.processes import ROOT, Process, read_process
from sge_jobs.node.claim.spools import Spools
from sge_jobs.node.claim.upgrade import adopt
from sge_jobs.node.gpus.inventory import boot_id, read_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_EXECD = "sge_execd"
_PAUSE_S = 0.05


class Attendant:
    """Assigns GPUs to running jobs without an answer.

    Args:
        active: Directory ``active_jobs`` of the execution daemon; empty if there is none.
        environment: Variables of the execution daemon.
    """

    def __init__(
        self, active: str, environment: Mapping[str, str], settings: NodeSettings | None = None
    ) -> None:
        self._spools = Spools(active)
        self._environment = environment
        self._settings = settings or NodeSettings()
        self._open: dict[tuple[str, int], Assignment] = {}
        self._adopted = False

    def attend(self) -> list[str]:
        """Take one step for each job without an answer; never wait for a GPU.

        Returns:
            The faults, for the log of the execution daemon.
        """
        if not self._adopted and not self._adopt():
            return []
        started = dict(self._spools.started())
        self._open = {key: one for key, one in self._open.items() if key[0] in started}
        faults = []
        for spool, shepherd in started.items():
            try:
                if self._answered(spool, shepherd):
                    self._spools.forget(spool)
            except OSError as error:  # the job has ended, or its file system is full
                faults.append(f"{spool}: {error}")
        return faults

    def _adopt(self) -> bool:
        known = read_cache(self._settings.cache)
        if known is None:  # the first report of the sensor lists the GPUs
            return False
        opened = Locks(self._settings.locks, boot_id())
        with Held(opened, self._settings.gpu_wait_s) as locks:
            adopt(locks, known.uuids, self._environment)
        self._adopted = True
        return True

    def _answered(self, spool: str, shepherd: Process) -> bool:
        found = read_answer(spool)
        if found is not None and found.shepherd == shepherd.pid:
            return True
        key = spool, shepherd.pid
        if key not in self._open:
            made = Assignment(shepherd, spool, self._environment, self._settings)
            self._open[key] = made
        answer = self._open[key].attempt()
        if answer is None:
            return False
        answer.shepherd = shepherd.pid
        write_answer(spool, answer)
        return True


class AttendantProcess:
    """A child process with an :class:`Attendant`, which a slow report does not delay."""

    def __init__(self) -> None:
        self._pid = 0

    def ensure(self) -> None:
        """Start the process if it does not run."""
        if self._pid and os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            return
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid:
            return
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1):  # the pipes belong to the sensor and the execution daemon
                os.dup2(null, descriptor)
            watch(Attendant(active_jobs(parent), os.environ), parent)
        finally:
            os._exit(0)


def watch(attendant: Attendant, parent: int) -> None:
    """Attend to jobs until the process ``parent`` ends."""
    said: list[str] = []
    while os.getppid() == parent:
        try:
            faults = attendant.attend()
        except Exception as error:  # noqa: BLE001 (a fault must not stop it)
            faults = [f"{type(error).__name__}: {error}"]
        for fault in faults:
            if fault not in said:
                sys.stderr.write(f"sge-jobs sensor: {fault}\n")
                sys.stderr.flush()
        said = faults
        time.sleep(_PAUSE_S)


def active_jobs(pid: int) -> str:
    """Return ``active_jobs`` of the execution daemon above process ``pid``; empty without one."""
    process = read_process(pid)
    while process is not None and not process.name.startswith(_EXECD):
        process = read_process(process.parent)
    if process is None or process.uid != ROOT:
        return ""
    try:
        return os.readlink(f"/proc/{process.pid}/cwd") + "/active_jobs"
    except OSError:
        return ""
