"""The warm process: ``python -m spearmint.trial.warm.process FD DIRECTORY NAME``.

It imports the modules of the user's code once. It forks a keeper in advance, which forks a runner;
both wait for the next request. The keeper reports how the runner ended, and terminates
what it left. The warm process exits with the driver that started it, and so does the keeper that
waits; trials and their keepers continue.
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
import sysconfig
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from spearmint.trial import runner
from spearmint.trial.environment import LOCK_FD
from spearmint.trial.leftovers import adopt_orphans, end_children
from spearmint.trial.warm.imports import imports_of
from spearmint.trial.warm.messages import CHANGED, CLEAN, receive, send

_TASKS = "/proc/self/task"
# The thread of pyarrow that returns memory; jemalloc turns it off in the child of a fork.
_JEMALLOC = "jemalloc_bg_thd"

_INSTALLED_S = 1.0
_Stamp = tuple[int, int]


def main(argv: Sequence[str]) -> int:
    """Import, report the state, and serve requests until the driver exits."""
    fd, directory, name = argv
    with socket.socket(fileno=int(fd)) as channel:
        channel.set_inheritable(False)
        problem = _prepare(Path(directory), name)
        gc.collect()
        gc.freeze()  # otherwise a collection in a trial copies every page of memory
        files = _Files()
        with contextlib.suppress(OSError):
            send(channel, {"problem": problem})
            if not problem:
                signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes ended keepers
                _serve(channel, files)
    return 0


def _serve(channel: socket.socket, files: _Files) -> None:
    """Pass each request to a keeper that was forked before: a fork of a large process is slow."""
    while True:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            channel.close()
            ours.close()
            _keep(theirs)
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
    own = str(threading.get_native_id())
    return sum(_is_lost(task) for task in os.listdir(_TASKS) if task != own)  # noqa: PTH208


def _is_lost(task: str) -> bool:
    """Return whether a fork would lose a thread that its library needs and does not restart."""
    try:
        name = Path(_TASKS, task, "comm").read_text().strip()
    except OSError:  # it has ended
        return False
    return name != _JEMALLOC


class _Files:
    """The files of all imported modules: have they changed since the import?

    Each call reads the files of the user's directories. It reads those of installed packages, a
    thousand or more, at most once a second.
    """

    def __init__(self) -> None:
        paths = sysconfig.get_paths()
        roots = tuple(f"{paths[name]}{os.sep}" for name in ("stdlib", "platstdlib"))
        roots += tuple(f"{paths[name]}{os.sep}" for name in ("purelib", "platlib"))
        stamps = _stamps()
        self._installed = {path: stamp for path, stamp in stamps.items() if path.startswith(roots)}
        self._own = {path: stamps[path] for path in stamps.keys() - self._installed.keys()}
        self._read_at = time.monotonic()

    def have_changed(self) -> bool:
        """Return whether the size or the time of a file is another one."""
        if any(_stamp(path) != stamp for path, stamp in self._own.items()):
            return True
        if time.monotonic() - self._read_at < _INSTALLED_S:
            return False
        self._read_at = time.monotonic()
        return any(_stamp(path) != stamp for path, stamp in self._installed.items())


def _stamps() -> dict[str, _Stamp]:
    """Return size and time of the files of all imported modules."""
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {path: stamp for path in paths if path and (stamp := _stamp(path))}


def _stamp(path: str) -> _Stamp | None:
    with contextlib.suppress(OSError):
        status = os.stat(path)  # noqa: PTH116 - a thousand files before a trial
        return status.st_mtime_ns, status.st_size
    return None


def _keep(channel: socket.socket) -> NoReturn:
    """Fork a runner, pass a request to it, report how it ended, and end what it left.

    Both exit if no request comes: the warm process has exited.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    adopt_orphans()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if (pid := os.fork()) == 0:
        channel.close()
        ours.close()
        _wait_and_run(theirs)
    theirs.close()
    received = receive(channel)
    if received is None:
        os._exit(0)
    request, (lock, output, report) = received
    if os.waitpid(pid, os.WNOHANG)[0]:
        os._exit(0)
    # Before the request: if the driver does not know the pid, it starts the trial again.
    _write(report, f"{pid}\n")
    send(ours, request, (lock, output))
    ours.close()
    channel.close()
    os.close(lock)
    os.close(output)
    status = 0
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


def _wait_and_run(channel: socket.socket) -> NoReturn:
    os.setsid()
    received = receive(channel)
    channel.close()
    if received is None:
        os._exit(0)
    request, (lock, output) = received
    _leave(_run(request, lock, output))


def _run(request: dict[str, Any], lock: int, output: int) -> int:
    """Become the runner of a trial."""
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
