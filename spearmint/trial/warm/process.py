"""The warm process: ``python -m spearmint.trial.warm.process FD DIRECTORY NAME [in-job]``.

It imports the modules of the user's code once. It forks a keeper in advance, which forks a runner;
both wait for the next request. The keeper reports how the runner ended, and terminates
what it left. The warm process exits with the driver that started it, and so does the keeper that
waits; trials and their keepers continue.

Local trials have their own session. In the job of a queue, all stay in the session and the process
group of the job, because some queues end a job by its process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from spearmint.trial.warm.files import ImportedFiles
from spearmint.trial.warm.forks import what_a_fork_loses
from spearmint.trial.warm.imports import imports_of
from spearmint.trial.warm.keeper import WARNINGS, keep
from spearmint.trial.warm.lessons import Lessons, import_all
from spearmint.trial.warm.messages import CHANGED, IN_JOB, receive, send

_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_MOST_STUDENTS = 2


def main(argv: Sequence[str]) -> int:
    """Import, report the state, and serve requests until the driver exits."""
    fd, directory, name, *flags = argv
    for number in WARNINGS:
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
                Server(channel, files, in_job=IN_JOB in flags).serve()
    return 0


def _reap(number: int, frame: FrameType | None) -> None:
    """Remove ended keepers."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Server:
    """Passes each request to a keeper that was forked before: a fork of a large process is slow.

    When a trial reports that its libraries imported many modules, a fork of this process imports
    them, too. If it can still be forked, it then serves instead of this process.

    Args:
        channel: From the driver or the pilot.
        files: Those of the imported modules.
        in_job: Whether trials stay in the session of this process.
        students: How many forks may learn from trials.
    """

    def __init__(
        self,
        channel: socket.socket,
        files: ImportedFiles,
        *,
        in_job: bool,
        students: int = _MOST_STUDENTS,
    ) -> None:
        self._channel, self._files, self._in_job = channel, files, in_job
        self._students = students
        self._student: socket.socket | None = None
        self._lessons = Lessons()

    def serve(self) -> None:
        """Serve until the driver exits, modules have changed, or a student takes over."""
        while True:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            if os.fork() == 0:
                self._channel.close()
                ours.close()
                keep(theirs, self._lessons, in_job=self._in_job)
            theirs.close()
            with ours:
                if self._wait_for_request(ours):
                    break
                if (received := receive(self._channel)) is None:
                    return
                request, fds = received
                if self._files.have_changed():
                    send(self._channel, {"problem": CHANGED})
                    return
                send(ours, request, fds)
            for each in fds:
                os.close(each)
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)

    def _wait_for_request(self, ours: socket.socket) -> bool:
        """Return when there is a request; True if a student serves from now on."""
        while True:
            watched = [self._channel]
            if self._student is not None:
                watched.append(self._student)
            elif self._students:
                watched.append(self._lessons.inbox)
            ready = select.select(watched, [], [])[0]
            if self._student in ready and self._student is not None:
                if self._student.recv(1):
                    self._student.send(b"1")
                    return True
                self._student.close()
                self._student = None
            elif self._lessons.inbox in ready:
                self._teach(self._lessons.receive(), ours)
            else:
                return False

    def _teach(self, names: list[str], ours: socket.socket) -> None:
        """Fork a student that imports modules."""
        if not names:
            return
        self._students -= 1
        parent = os.getpid()
        self._student, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            ours.close()
            self._student.close()
            self._study(names, theirs, parent)
        theirs.close()

    def _study(self, names: list[str], link: socket.socket, parent: int) -> NoReturn:
        """Import modules; if a fork loses nothing, serve when the parent has stopped."""
        ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        if os.getppid() == parent:
            import_all(names)
            if not what_a_fork_loses():
                gc.collect()
                gc.freeze()
                self._files.add_imported()
                with contextlib.suppress(OSError):
                    link.send(b"1")
                    if link.recv(1):
                        link.close()
                        signal.signal(signal.SIGCHLD, _reap)
                        Server(
                            self._channel,
                            self._files,
                            in_job=self._in_job,
                            students=self._students,
                        ).serve()
        os._exit(0)


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
