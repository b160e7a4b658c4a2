"""A fake ``node.ssh``, without a connection."""

from __future__ import annotations

import posixpath
import re
import shlex
import time
from collections import deque
from collections.abc import Callable, Mapping

from starcluster.errors import CommandTimeout, SshError
from starcluster.node.commands import Answer, RemoteCommands, without_profile
from starcluster.node.files import RemoteFiles
from starcluster.testing.files import Entry, FakeSftp
from starcluster.testing.programs import BUILT_IN, Program, Reply

ANY = "*"
"""Stands for all other programs in :meth:`FakeShell.answer`."""


class FakeShell(RemoteCommands, RemoteFiles):
    """``node.ssh`` of a :class:`FakeNode`; its users and groups are in its /etc/passwd.

    Attributes:
        name: Alias of the node, for messages.
        programs: Programs by name; :meth:`answer` adds one.
        reachable: False simulates a node that does not answer: every use raises SshError.
        ran: Command lines that ran, in order.
    """

    host_key = "ssh-ed25519 AAAAhost"
    public_key = "ssh-ed25519 AAAAconnection"

    def __init__(
        self, name: str = "node001", programs: Mapping[str, Program] | None = None
    ) -> None:
        self.name, self.user, self.reachable = name, "root", True
        self.programs = dict(programs or {})
        self.ran: list[str] = []
        self.files = FakeSftp()
        self._takes_s: dict[str, float] = {}
        self._last_status = 0

    def answer(self, program: str, *replies: Reply, takes_s: float = 0.0) -> None:
        """Set the ``replies`` of ``program``: one per call, then the last one repeatedly.

        Args:
            program: Name without a directory; ``ANY`` for all other programs.
            replies: Such as ``"done"``, ``(100, "E: locked")`` or ``SshError("lost")``. Without
                replies, the program exits with 0 and no output.
            takes_s: Seconds that a call takes. If that exceeds ``timeout_s`` of the caller, the
                call raises CommandTimeout immediately.
        """
        left = deque(replies or ("",))

        def run(shell: FakeShell, words: list[str], stdin: str) -> Reply:
            return left.popleft() if len(left) > 1 else left[0]

        self.programs[program] = run
        self._takes_s[program] = takes_s

    @property
    def sftp(self) -> FakeSftp:
        """The files in memory."""
        self.connect()
        return self.files

    def add_file(self, path: str, text: str = "", mode: int = 0o644) -> None:
        """Add a file and its parent directories."""
        self.makedirs(posixpath.dirname(path))
        self.files.entries[posixpath.normpath(path)] = Entry(text.encode(), mode)

    def connect(self, *, wait_s: float = 0.0) -> None:
        """Do nothing; raise SshError if the node is not reachable."""
        if not self.reachable:
            raise SshError(f"{self.name}: cannot connect by SSH")

    def close(self) -> None:
        """Do nothing."""

    def switch_user(self, user: str) -> None:
        """Set the user."""
        self.user = user

    def _run(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        combined: bool = False,
        timeout_s: float,
        show: Callable[[str], object] | None = None,
    ) -> Answer:
        self.connect()
        command = without_profile(script)
        self.ran.append(command)
        words = _words(command)
        program = posixpath.basename(words[0]) if words else ""
        found = self.programs.get(program) or BUILT_IN.get(program) or self.programs.get(ANY)
        takes_s = self._takes_s.get(program, 0.0)
        if takes_s > timeout_s:
            raise CommandTimeout(f"{self.name}: {command}: timeout after {timeout_s:g} s")
        time.sleep(takes_s)
        reply = found(self, words, stdin.decode(errors="replace")) if found else _missing(program)
        answer = _answer_of(reply, combined=combined)
        self._last_status = answer.status
        if show:
            show(answer.stdout)
        return answer


def _words(command: str) -> list[str]:
    """Return the words of a command line, without leading NAME=value words."""
    try:
        words = shlex.split(command)
    except ValueError:  # quotes of a script can span several lines
        words = command.split()
    while words and re.match(r"\w+=", words[0]):
        words = words[1:]
    return words


def _answer_of(reply: Reply, *, combined: bool) -> Answer:
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, str):
        return Answer(status=0, stdout=reply, stderr="")
    if isinstance(reply, tuple):
        status, text = reply
        out, err = (text, "") if not status or combined else ("", text)
        return Answer(status=status, stdout=out, stderr=err)
    return reply


def _missing(program: str) -> Reply:
    return 127, f"{program}: not found"
