"""The warm process: ``python -m spearmint.trial.warm.process FD DIRECTORY NAME [in-job]``.

It imports the modules of the user's code once. It forks a keeper in advance, which forks a runner;
both wait for the next request. The keeper reports how the runner ended, and terminates
what it left. The warm process exits with the driver that started it, and so does the keeper that
waits; trials and their keepers continue.

Local trials have their own session. In the job of a queue, all stay in the session and the process
group of the job, because some queues end a job by its process group.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from spearmint.trial import runner
from spearmint.trial.environment import LOCK_FD
from spearmint.trial.leftovers import adopt_orphans, end_children
from spearmint.trial.warm.files import ImportedFiles
from spearmint.trial.warm.forks import what_a_fork_loses
from spearmint.trial.warm.imports import imports_of
from spearmint.trial.warm.messages import CHANGED, CLEAN, IN_JOB, receive, send

_WARNINGS = (signal.SIGUSR1, signal.SIGUSR2)
_ENDS = (signal.SIGTERM, signal.SIGINT)


def main(argv: Sequence[str]) -> int:
    """Import, report the state, and serve requests until the driver exits."""
    fd, directory, name, *flags = argv
    for number in _WARNINGS:
        signal.signal(number, signal.SIG_IGN)  # a queue sends them to all processes of a job
    with socket.socket(fileno=int(fd)) as channel:
        channel.set_inheritable(False)
        problem = _prepare(Path(directory), name)
        gc.collect()
        gc.freeze()  # otherwise a collection in a trial copies every page of memory
        files = ImportedFiles()
        with contextlib.suppress(OSError):
            send(channel, {"problem": problem})
            if not problem:
                # Not SIG_IGN: the CPU time of trials would not count as that of this process.
                signal.signal(signal.SIGCHLD, _reap)
                _serve(channel, files, in_job=IN_JOB in flags)
    return 0


def _reap(number: int, frame: FrameType | None) -> None:
    """Remove ended keepers."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(channel: socket.socket, files: ImportedFiles, *, in_job: bool) -> None:
    """Pass each request to a keeper that was forked before: a fork of a large process is slow."""
    while True:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            channel.close()
            ours.close()
            _keep(theirs, in_job=in_job)
        theirs.close()
        with ours:
            if (received := receive(channel)) is None:
                return
            request, fds = received
            if files.have_changed():
                send(channel, {"problem": CHANGED})
                return
            send(ours, request, fds)
        for each in fds:
            os.close(each)


def _prepare(directory: Path, name: str) -> str:
    """Import what the user's code imports; return why trials must not be forked, or nothing."""
    os.chdir(directory)
    found = imports_of(directory, name)
    if found.writes_environment:
        return "the code changes environment variables"
    importlib.import_module("numpy")  # the arguments of main
    for module in found.modules:
        _import(module)
        if problem := what_a_fork_loses():
            return f"{module} {problem} when it was imported"
    return ""


def _import(name: str) -> None:
    """Import a module, or a name of a module that can be a submodule."""
    parent, _, last = name.rpartition(".")
    with contextlib.suppress(Exception):  # the trial itself reports it
        if parent in sys.modules and hasattr(sys.modules[parent], last):
            return
        importlib.import_module(name)


def _keep(channel: socket.socket, *, in_job: bool = False) -> NoReturn:
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
        _wait_and_run(theirs, in_job=in_job)
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


def _wait_and_run(channel: socket.socket, *, in_job: bool) -> NoReturn:
    if not in_job:
        os.setsid()
    received = receive(channel)
    channel.close()
    if received is None:
        os._exit(0)
    request, fds = received
    for number in _WARNINGS:
        signal.signal(number, signal.SIG_DFL)
    _leave(_run(request, *fds))


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
