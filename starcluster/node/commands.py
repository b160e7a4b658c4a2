"""Commands on a node, as plugins run them: a part of ``node.ssh``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from starcluster.errors import RemoteCommandFailed
from starcluster.logger import log, redact

COMMAND_S = 3600.0
"""Seconds that a command may take unless the caller says otherwise."""
_PROFILE = "[ ! -r /etc/profile ] || . /etc/profile >/dev/null 2>&1\n"
_TAIL, _TAIL_SHOWN = 20, 4000  # lines, characters of a failed command's words


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command wrote and its exit status."""

    status: int
    stdout: str
    stderr: str


class RemoteCommands:
    """Commands on one node; ``name`` is the node's, for messages."""

    name: str
    _last_status: int

    def _run(
        self,
        script: str,
        *,
        stdin: bytes = b"",
        combined: bool = False,
        timeout_s: float,
        show: Callable[[str], object] | None = None,
    ) -> Answer:
        """Run a shell command, its errors among its output where ``combined``."""
        raise NotImplementedError

    def execute(
        self,
        command: str,
        silent: bool = True,
        only_printable: bool = False,
        ignore_exit_status: bool = False,
        log_output: bool = True,
        detach: bool = False,
        source_profile: bool = True,
        raise_on_failure: bool = True,
        *,
        timeout_s: float = COMMAND_S,
    ) -> list[str]:
        """Run a shell command; return the lines that it wrote, errors among them.

        Args:
            silent: Do not show the lines here as they come.
            only_printable: Drop control characters.
            ignore_exit_status: Do not even look at it.
            log_output: Whether the lines may be in the log and in an error's text.
            detach: Leave it running on the node; return nothing at once.
            raise_on_failure: Else the failure is only logged.

        Raises:
            RemoteCommandFailed: It exited other than 0.
            SshError: No connection, or it broke; the command may or may not have run.
        """
        log.debug("%s: %s", self.name, redact(command))
        script = (_PROFILE if source_profile else "") + command
        if detach:
            script = f"nohup sh -c {shlex.quote(script)} </dev/null >/dev/null 2>&1 &"
        show = None if silent else sys.stdout.write
        answer = self._run(script, combined=True, timeout_s=timeout_s, show=show)
        text = answer.stdout
        if only_printable:
            text = "".join(char for char in text if char.isprintable() or char in "\n\t")
        lines = text.splitlines()
        if log_output and lines:
            log.debug("%s: %s", self.name, redact(text))
        if answer.status and not ignore_exit_status:
            failure = self._failure(command, answer.status, lines if log_output else None)
            if raise_on_failure:
                raise failure
            log.error("%s", failure.what)
        return lines

    def execute_async(self, command: str, source_profile: bool = True) -> list[str]:
        """Start a shell command that goes on without this connection."""
        return self.execute(command, detach=True, source_profile=source_profile)

    def get_status(self, command: str, source_profile: bool = True) -> int:
        """Run a shell command; return its exit status."""
        log.debug("%s: %s", self.name, redact(command))
        script = (_PROFILE if source_profile else "") + command
        return self._run(script, combined=True, timeout_s=COMMAND_S).status

    def get_last_status(self) -> int:
        """Return the exit status of the last command."""
        return self._last_status

    def which(self, prog: str) -> list[str]:
        """Return the path of a program, empty where the node has none."""
        return self.execute(f"command -v {shlex.quote(prog)}", ignore_exit_status=True)

    def run(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = COMMAND_S
    ) -> Answer:
        """Run a program; secrets go through ``stdin``, for a node's users see its arguments."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self._run(shlex.join(argv), stdin=data, timeout_s=timeout_s)

    def checked(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = COMMAND_S
    ) -> str:
        """Run a program; return what it wrote to its output. RemoteCommandFailed in its words."""
        answer = self.run(argv, stdin=stdin, timeout_s=timeout_s)
        if answer.status:
            lines = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
            raise self._failure(shlex.join(argv), answer.status, lines)
        return answer.stdout

    def _failure(
        self, command: str, status: int, lines: Sequence[str] | None
    ) -> RemoteCommandFailed:
        short = redact(command.strip().splitlines()[0] if command.strip() else command)
        how = f"exit status {status}" if status > 0 else "ended by a signal"
        tail = "".join(f"\n  {line}" for line in (lines or ())[-_TAIL:])
        return RemoteCommandFailed(
            f"{self.name}: {short}: {how}{redact(tail, limit=_TAIL_SHOWN)}",
            exit_status=status if status > 0 else None,
            output=lines or (),
        )


def without_profile(script: str) -> str:
    """Return the command of a script that may begin by reading the profile."""
    return script.removeprefix(_PROFILE)
