"""A keeper forks the runner of a trial, reports how it ended, and ends what it left."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import signal
import socket
import sys
import threading
from types import FrameType
from typing import Any, NoReturn

from spearmint.trial import runner
from spearmint.trial.environment import LOCK_FD
from spearmint.trial.leftovers import adopt_orphans, end_children
from spearmint.trial.warm.lessons import Lessons
from spearmint.trial.warm.messages import CLEAN, receive, send

WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
_ENDS = (signal.SIGTERM, signal.SIGINT)


def keep(channel: socket.socket, lessons: Lessons, *, in_job: bool = False) -> NoReturn:
    """Fork a runner, pass a request to it, report how it ended, and end what it left.

    Both exit if no request comes: the warm process has exited.
    """
    parent = os.getppid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if not in_job:
        os.setsid()
    adopt_orphans()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if (pid := os.fork()) == 0:
        channel.close()
        ours.close()
        _wait_and_run(theirs, lessons, in_job=in_job)
    theirs.close()
    received = receive(channel)
    if received is None:
        os._exit(0)
    request, (*fds, report) = received
    if in_job:
        _pass_ends_on(pid, parent)
    if os.waitpid(pid, os.WNOHANG)[0]:
        os._exit(0)
    # Before the request: if the driver does not know the pid, it starts the trial again.
    _write(report, f"{pid}\n")
    send(ours, request, fds)
    ours.close()
    channel.close()
    for fd in fds:
        os.close(fd)
    status = 0
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if ended == pid:
            break
    for number in _ENDS if in_job else ():
        signal.signal(number, signal.SIG_IGN)
    _write(report, f"{os.waitstatus_to_exitcode(status)}\n")
    end_children()
    _write(report, f"{CLEAN}\n")
    os._exit(0)


def _pass_ends_on(runner: int, parent: int) -> None:
    """Pass signals that end the job to the runner, if the pilot that does so has been killed."""

    def forward(number: int, frame: FrameType | None) -> None:
        if os.getppid() != parent:
            with contextlib.suppress(ProcessLookupError):
                os.kill(runner, number)

    for number in _ENDS:
        signal.signal(number, forward)


def _write(fd: int, text: str) -> None:
    with contextlib.suppress(OSError):  # the driver has exited
        os.write(fd, text.encode())


def _wait_and_run(channel: socket.socket, lessons: Lessons, *, in_job: bool) -> NoReturn:
    if not in_job:
        os.setsid()
    received = receive(channel)
    channel.close()
    if received is None:
        os._exit(0)
    request, fds = received
    for number in WARNINGS:
        signal.signal(number, signal.SIG_DFL)
    status = _run(request, *fds)
    lessons.tell()
    _leave(status)


def _run(request: dict[str, Any], output: int, lock: int | None = None) -> int:
    """Become the runner of a trial, which takes its lock if it is not passed on."""
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["environment"])
    if lock is not None:
        os.environ[LOCK_FD] = str(lock)
    sys.argv = [runner.__file__, request["folder"]]
    _reseed()
    return runner.main([request["folder"]])


def _leave(status: int) -> NoReturn:
    """Exit as the interpreter does, but without freeing memory, which takes ten times as long."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    ctypes.CDLL(None).fflush(None)
    os._exit(status)


def _reseed() -> None:
    """Give this trial its own random numbers, as a new process would have them."""
    for name in ("random", "numpy.random"):
        if name in sys.modules:
            sys.modules[name].seed()
