"""Find and terminate the processes of a trial on this machine."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from spearmint.layout import TrialFolder, read_json
from spearmint.trial.environment import TRIAL_DIR

_TERM_GRACE_S = 5.0
_KILL_GRACE_S = 5.0
_CLOCK_SLACK_S = 1.0


def identity(pid: int) -> str | None:
    """Return ``PID@START``, which is unique in time; None if the process does not run."""
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return f"{pid}@{process.create_time():.2f}"
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None


def pid_of(job_id: str) -> int:
    """Return the process id of an identity."""
    return int(job_id.partition("@")[0])


def is_alive(job_id: str) -> bool:
    """Return whether the process with this identity runs."""
    return identity(pid_of(job_id)) == job_id


def runner_identity(folder: TrialFolder) -> str | None:
    """Return the identity of the runner that wrote ``runner.json``; None if it has exited.

    If another process reuses the process id, it started after the runner wrote the file.
    """
    written = read_json(folder.runner)
    if written is None:
        return None
    found = identity(int(written["pid"]))
    if found is None or float(found.partition("@")[2]) > float(written["start"]) + _CLOCK_SLACK_S:
        return None
    return found


def dead_runner(folder: TrialFolder) -> str | None:
    """Return an identity for the session of an exited runner; None if it never wrote its pid."""
    written = read_json(folder.runner)
    return None if written is None else f"{written['pid']}@gone"


@dataclass(frozen=True, slots=True)
class Family:
    """All processes of one job: those of its session or with its mark, and their children.

    Attributes:
        leader: Identity of the runner, which leads the session; None if unknown.
        mark: The trial's folder, which its processes have in SPEARMINT_TRIAL_DIR.
    """

    leader: str | None
    mark: Path

    def members(self) -> list[psutil.Process]:
        """Return the processes that run now."""
        session = self._session()
        found: dict[int, psutil.Process] = {}
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if self._is_member(process, session):
                    for member in (process, *process.children(recursive=True)):
                        found[member.pid] = member
        found.pop(os.getpid(), None)
        return [process for process in found.values() if _runs(process)]

    def _session(self) -> int | None:
        """Return the session id; None if an unrelated process has reused the leader's pid."""
        if self.leader is None:
            return None
        pid = pid_of(self.leader)
        return pid if identity(pid) in (None, self.leader) else None

    def _is_member(self, process: psutil.Process, session: int | None) -> bool:
        if process.pid == os.getpid():
            return False
        if session is not None and os.getsid(process.pid) == session:
            return True
        return bool(process.environ().get(TRIAL_DIR) == str(self.mark))

    def end(self) -> None:
        """Terminate all processes: SIGTERM, and SIGKILL 5 s later."""
        if self._signal(psutil.Process.terminate, _TERM_GRACE_S):
            self._signal(psutil.Process.kill, _KILL_GRACE_S)

    def _signal(self, send: Callable[[psutil.Process], None], grace_s: float) -> bool:
        """Signal all members; return whether any member still runs after ``grace_s`` seconds."""
        deadline = time.monotonic() + grace_s
        reached: set[int] = set()
        while members := self.members():
            for process in members:
                if process.pid not in reached:
                    reached.add(process.pid)
                    with contextlib.suppress(psutil.Error):
                        send(process)
            if time.monotonic() > deadline:
                return True
            time.sleep(0.02)
        return False


def _runs(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def end_all(families: Collection[Family]) -> None:
    """Terminate several jobs; send SIGTERM to all of them before waiting for any."""
    for family in families:
        for process in family.members():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGTERM)
    for family in families:
        family.end()


def wait_for_end(pids: Iterable[int], timeout_s: float) -> None:
    """Return when one of ``pids`` has ended, or after ``timeout_s`` seconds."""
    opened: list[int] = []
    try:
        poller = select.poll()
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                return
            except (AttributeError, OSError):  # an old kernel, or a container that forbids it
                time.sleep(min(timeout_s, 0.05))
                return
            opened.append(fd)
            poller.register(fd, select.POLLIN)
        poller.poll(timeout_s * 1000)
    finally:
        for fd in opened:
            os.close(fd)
