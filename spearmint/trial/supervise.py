"""Run a command under a life line: ``python -m spearmint.trial.supervise``, task on standard input.

Standard input is a socket. It brings the life line and other file descriptors to keep open, then
the task as JSON. The process can wait there for its task; without one it exits.

The holder of the life line, a pipe, is the process that the command must not survive. If it dies by
any cause, the kernel closes the pipe, and the command and all that it started are killed.

While the command runs, a counter in the lease file grows. Another host sees by it that the command
may still write. If the lease cannot be renewed, the command is killed before it counts as lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spearmint.trial.leftovers import adopt_orphans

_STEP_S = 0.5
_MOST_FDS = 8
_TERM_GRACE_S = 5.0
_REAP_S = 10.0


class Lease:
    """The counter in the file ``lease``, and the request to stop in the file ``cancel``.

    Both are in the job's folder. If the folder has moved, the controller counts the job as lost.

    Attributes:
        grace_s: Seconds from SIGTERM to SIGKILL.
    """

    def __init__(self, folder: Path, fence_s: float, grace_s: float = _TERM_GRACE_S) -> None:
        self._folder, self._fence_s, self.grace_s = folder, fence_s, grace_s
        self._count, self._renewed = 0, _now()

    def renew(self) -> str:
        """Write the next number; return why the command must be killed, or an empty string."""
        self._count += 1
        try:
            fd = os.open(self._folder / "lease", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(fd, f"{self._count:020d}\n".encode(), 0)
            finally:
                os.close(fd)
            self._renewed = _now()
        except FileNotFoundError:
            return "the controller counts it as lost"
        except OSError:
            return self.overdue()
        return ""

    def overdue(self) -> str:
        """Return a reason if the last renewal is too long ago."""
        if _now() - self._renewed < self._fence_s:
            return ""
        return f"its lease could not be renewed for {self._fence_s:g} s"

    def is_cancelled(self) -> bool:
        """Return whether the controller asked for the end: the file is not empty."""
        with contextlib.suppress(OSError):
            fd = os.open(self._folder / "cancel", os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.fstat(fd).st_size > 0
            finally:
                os.close(fd)
        return False


def main() -> int:
    """Run the task of standard input; write how it ended to the file ``end`` in its folder."""
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the life line says when to end
    with socket.socket(fileno=os.dup(0)) as link:
        _, fds, _, _ = socket.recv_fds(link, 1, _MOST_FDS)
        text = link.makefile("rb").read()
    if not fds or not text:
        return 0
    task = json.loads(text)
    folder = Path(task["folder"])
    began = time.time()
    lease = Lease(folder, task["fence_s"], task.get("grace_s", _TERM_GRACE_S))
    end: dict[str, Any] = {"host": os.uname().nodename, "exit_status": 0, "signal": 0}
    if reason := lease.renew():
        end["failure"] = reason
    else:
        try:
            end |= _run(task, lease, fds[0])
        except OSError as error:
            end["failure"] = f"cannot start the trial: {error}"
    end |= {"ended": time.time(), "seconds": time.time() - began}
    with contextlib.suppress(OSError):
        part = folder / ".end.part"
        part.write_text(json.dumps(end))
        part.replace(folder / "end")
    return 0


def _run(task: Mapping[str, Any], lease: Lease, life_line: int) -> dict[str, Any]:
    with Path(task["output"]).open("ab") as output:
        child = subprocess.Popen(
            task["argv"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=task["directory"],
            env=task["environment"],
            preexec_fn=_default_signals,
            start_new_session=True,
        )
    limit = float(task.get("walltime_s") or "inf")
    end = _watch(child, life_line, lease, _now() + limit)
    _end_all(child, lease)
    status = child.poll()
    if status is not None and status < 0:
        end.setdefault("signal", -status)
    elif status:
        end["exit_status"] = status
    return end


def _default_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _watch(
    child: subprocess.Popen[bytes], life_line: int, lease: Lease, limit: float
) -> dict[str, Any]:
    """Wait until the command has ended, or end it; return what ended it."""
    poller = select.poll()
    poller.register(life_line, select.POLLIN | select.POLLHUP)
    step_s = _STEP_S
    try:
        pidfd = os.pidfd_open(child.pid)
        poller.register(pidfd, select.POLLIN)
    except (AttributeError, OSError):  # an old kernel, or a container that forbids it
        step_s = 0.05
    while child.poll() is None:
        events = dict(poller.poll(step_s * 1000))
        if life_line in events:
            return _killed("its worker died")
        if lease.is_cancelled():
            _end_gently(child, lease)
            return {}
        if reason := lease.renew():
            return _killed(reason)
        if _now() > limit:
            _end_gently(child, lease)
            return {"timed_out": True}
    return {}


def _killed(reason: str) -> dict[str, Any]:
    _signal(os.getpid(), signal.SIGKILL)
    return {"failure": reason, "signal": 0}


def _end_gently(child: subprocess.Popen[bytes], lease: Lease) -> None:
    """Send SIGTERM, and return after the grace time or when the command has exited."""
    _signal(os.getpid(), signal.SIGTERM)
    deadline = time.monotonic() + lease.grace_s
    while child.poll() is None and time.monotonic() < deadline and not lease.renew():
        time.sleep(0.05)


def _end_all(child: subprocess.Popen[bytes], lease: Lease) -> None:
    """Kill everything that the command left, and wait for it."""
    deadline = time.monotonic() + _REAP_S
    child.poll()
    while (left := descendants(os.getpid())) and time.monotonic() < deadline:
        _signal(os.getpid(), signal.SIGKILL)
        child.poll()
        for pid in left:
            if pid != child.pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        lease.renew()
        time.sleep(0.02)


def _signal(pid: int, number: int) -> None:
    for child in descendants(pid):
        with contextlib.suppress(OSError):
            os.kill(child, number)


def descendants(pid: int) -> list[int]:
    """Return the processes that ``pid`` and its children started, the parents first."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - the imports of a trial
            text = Path(f"/proc/{pid}/task/{thread}/children").read_text()
            found += [int(word) for word in text.split()]
    return [*found, *(below for child in found for below in descendants(child))]


def _now() -> float:
    """Return seconds that also count while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


if __name__ == "__main__":
    sys.exit(main())
