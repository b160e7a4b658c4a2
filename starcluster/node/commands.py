"""Commands on a node, as plugins run them: a part of ``node.ssh``."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from starcluster.errors import RemoteCommandFailed
from starcluster.logger import log, redact

COMMAND_S = 3600.0
"""Default timeout of a command in seconds."""
_PROFILE = "[ ! -r /etc/profile ] || . /etc/profile >/dev/null 2>&1\n"
_TAIL, _TAIL_SHOWN = 20, 4000  # lines and characters of a failed command's output in its error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The output and the exit status of a command."""

    status: int
    stdout: str
    stderr: str


class RemoteCommands:
    """Commands on one node; ``name`` is the name of the node in messages."""

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
        """Run a shell command; ``combined`` merges its standard error into its output."""
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
        """Run a shell command; return the lines of its output and standard error.

        Args:
            silent: Do not print the lines as they arrive.
            only_printable: Drop control characters.
            ignore_exit_status: Accept any exit status.
            log_output: Include the lines in the log and in errors.
            detach: Start the command, return immediately with no lines, and leave it running.
            raise_on_failure: Raise if the command fails; otherwise only log the failure.

        Raises:
            RemoteCommandFailed: The exit status was not 0.
            SshError: The connection failed.
            ConnectionLost: The connection was lost; whether the command finished is unknown.
            CommandTimeout: The command did not finish in ``timeout_s``; it may still run.
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
        """Start a shell command that keeps running without this connection."""
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
        """Return the path of a program as a list; empty if the node does not have it."""
        return self.execute(f"command -v {shlex.quote(prog)}", ignore_exit_status=True)

    def has_required(self, progs: Iterable[str]) -> bool:
        """Return whether the node has all programs; the log names those that are missing."""
        missing = [prog for prog in progs if not self.which(prog)]
        if missing:
            log.warning("%s: missing programs: %s", self.name, ", ".join(missing))
        return not missing

    def run(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = COMMAND_S
    ) -> Answer:
        """Run a program; pass secrets by ``stdin``, because users of the node see arguments."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        return self._run(shlex.join(argv), stdin=data, timeout_s=timeout_s)

    def checked(
        self, argv: Sequence[str], *, stdin: str | bytes = b"", timeout_s: float = COMMAND_S
    ) -> str:
        """Run a program; return its output. Raises RemoteCommandFailed with its last lines."""
        answer = self.run(argv, stdin=stdin, timeout_s=timeout_s)
        if answer.status:
            lines = (answer.stderr.strip() or answer.stdout.strip()).splitlines()
            raise self._failure(shlex.join(argv), answer.status, lines)
        return answer.stdout

    def _failure(
        self, command: str, status: int, lines: Sequence[str] | None
    ) -> RemoteCommandFailed:
        short = redact(command.strip().splitlines()[0] if command.strip() else command)
        how = f"exit status {status}" if status > 0 else "killed by a signal"
        tail = "".join(f"\n  {line}" for line in (lines or ())[-_TAIL:])
        return RemoteCommandFailed(
            f"{self.name}: {short}: {how}{redact(tail, limit=_TAIL_SHOWN)}",
            exit_status=status if status > 0 else None,
            output=lines or (),
        )


def without_profile(script: str) -> str:
    """Return a script without the line that reads the profile, if it has one."""
    return script.removeprefix(_PROFILE)
