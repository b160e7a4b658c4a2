"""The warm process: ``python -m spearmint.trial.warm.process FD DIRECTORY NAME``.

It imports the modules of the user's code once. For each request it forks a keeper, which forks the
runner of one trial. The keeper reports how the runner ended, and terminates what it left. The warm
process exits with the driver that started it; keepers and trials continue.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from spearmint.trial import runner
from spearmint.trial.environment import LOCK_FD
from spearmint.trial.leftovers import adopt_orphans, end_children
from spearmint.trial.warm.imports import imports_of
from spearmint.trial.warm.messages import CHANGED, CLEAN, receive, send

_Stamps = dict[str, tuple[int, int]]


def main(argv: Sequence[str]) -> int:
    """Import, report the state, and serve requests until the driver exits."""
    fd, directory, name = argv
    with socket.socket(fileno=int(fd)) as channel:
        channel.set_inheritable(False)
        problem = _prepare(Path(directory), name)
        stamps = _stamps()
        with contextlib.suppress(OSError):
            send(channel, {"problem": problem})
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes ended keepers
            while not problem and (received := receive(channel)) is not None:
                if _stamps() != stamps:
                    send(channel, {"problem": CHANGED})
                    break
                request, fds = received
                if os.fork() == 0:
                    channel.close()
                    _keep(request, *fds)
                for each in fds:
                    os.close(each)
    return 0


def _prepare(directory: Path, name: str) -> str:
    """Import what the user's code imports; return why trials must not be forked, or nothing."""
    os.chdir(directory)
    found = imports_of(directory, name)
    if found.writes_environment:
        return "the code changes environment variables"
    importlib.import_module("numpy")  # the arguments of main
    for module in found.modules:
        _import(module)
        if count := _threads():
            return f"{module} started {count} threads when it was imported"
    return ""


def _import(name: str) -> None:
    """Import a module, or a name of a module that can be a submodule."""
    parent, _, last = name.rpartition(".")
    with contextlib.suppress(Exception):  # the trial itself reports it
        if parent in sys.modules and hasattr(sys.modules[parent], last):
            return
        importlib.import_module(name)


def _threads() -> int:
    """Return the number of threads that a fork would lose.

    Libraries such as OpenBLAS end their threads before a fork and start them again when needed.
    """
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) - 1  # noqa: PTH208 - no Path is needed


def _stamps() -> _Stamps:
    """Return size and time of the files of all imported modules."""
    found = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path:
            with contextlib.suppress(OSError):
                status = os.stat(path)  # noqa: PTH116 - a thousand files before each trial
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def _keep(request: dict[str, Any], lock: int, output: int, report: int) -> NoReturn:
    """Fork the runner, report its process id and its status, and end what it left."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    adopt_orphans()
    if (pid := os.fork()) == 0:
        os.close(report)
        _leave(_run(request, lock, output))
    os.close(lock)
    os.close(output)
    status = 0
    _write(report, f"{pid}\n")
    while True:
        try:
            ended, status = os.waitpid(-1, 0)
        except ChildProcessError:
            break
        if ended == pid:
            break
    _write(report, f"{os.waitstatus_to_exitcode(status)}\n")
    end_children()
    _write(report, f"{CLEAN}\n")
    os._exit(0)


def _write(fd: int, text: str) -> None:
    with contextlib.suppress(OSError):  # the driver has exited
        os.write(fd, text.encode())


def _run(request: dict[str, Any], lock: int, output: int) -> int:
    """Become the runner of a trial."""
    os.setsid()
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    os.environ.clear()
    os.environ.update(request["environment"])
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
