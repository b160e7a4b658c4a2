"""Run Grid Engine's commands: find them, set their environment, kill them after a timeout."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sge_jobs.errors import QueueUnreachable, SgeJobsError

_DEBIAN = Path("/usr/lib/gridengine")
_DEBIAN_DEFAULTS = Path("/etc/default/gridengine")
_DEBIAN_WRAPPER = "gridengine-wrapper"  # takes 100 ms per call
_ARCHITECTURES = {"x86_64": "lx-amd64", "aarch64": "lx-arm64", "i686": "lx-x86"}
_ANSWERS = {"LC_ALL": "C.UTF-8", "TZ": "UTC0"}  # not for qsub: -V would copy them into the job
# Variables that locate and authenticate a cell. The others change what commands print, such as
# SGE_SINGLE_LINE, SGE_LONG_QNAMES and SGE_DEBUG_LEVEL.
_CELL = {
    *("SGE_ROOT", "SGE_CELL", "SGE_ARCH", "SGE_CLUSTER_NAME", "SGE_QMASTER_PORT", "SGE_EXECD_PORT"),
    *("SGE_CAKEYFILE", "SGE_CERTFILE", "SGE_KEYFILE", "SGE_NO_CA_LOCAL_ROOT"),
}
_CHANGING = ("SGE_", "MORE_INFO", "GRIDLOCALEDIR", "GRIDPACKAGE", "LANGUAGE")
_UNREACHABLE = re.compile(
    r"commlib error|unable to (send message to|contact) qmaster|can't resolve host name"
    r"|cell directory .* doesn't exist|set the environment variable SGE_ROOT"
    r"|got (send|read|select) error|failed receiving gdi request|act_qmaster",
    re.IGNORECASE,
)
_UNKNOWN_HOST = re.compile(r'host "([^"]+)" is (?:neither submit nor admin|not a submit) host')
_NO_COMMAND_FIX = (
    "Install Grid Engine's client (Debian: apt-get install gridengine-client),"
    " or run this on the master or a submit host of the cell."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command printed and its exit status."""

    status: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Standard error and output together."""
        return "\n".join(text for text in (self.err.strip(), self.out.strip()) if text)


class Commands:
    """Runs qsub and other commands; raises QueueUnreachable if the master does not respond.

    Args:
        programs: Directory of the commands; None to find them in PATH.
        timeout_s: Timeout of each command in seconds.
    """

    def __init__(self, *, programs: Path | None = None, timeout_s: float = 30.0) -> None:
        self._programs = programs
        self._timeout_s = timeout_s

    def ask(self, name: str, *arguments: str) -> str:
        """Return the output of ``name``; raises SgeJobsError if it fails."""
        answer = self.run(name, *arguments)
        if answer.status:
            what = f"{name} {' '.join(arguments)} failed: {answer.words}"
            raise SgeJobsError(what, access_fix(answer.words))
        return answer.out

    def run(
        self,
        name: str,
        *arguments: str,
        stdin: bytes = b"",
        inherit: Sequence[int] = (),
        timeout_s: float | None = None,
    ) -> Answer:
        """Return the answer of ``name``.

        Args:
            inherit: File descriptors that the command inherits.
            timeout_s: Timeout in seconds; None for the default.

        Raises:
            QueueUnreachable: The command does not exist, times out, or cannot reach the master.
        """
        command = [self._program(name), *arguments]
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        # A file, not a pipe: if this process is killed, qsub must not submit half a script. A new
        # session: Ctrl-C must not kill qsub between submitting a job and printing its number.
        source = os.memfd_create("stdin")
        try:
            os.pwrite(source, stdin, 0)
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self.environment if name == "qsub" else {**self.environment, **_ANSWERS},
                pass_fds=tuple(inherit),
                start_new_session=True,
            )
        except OSError as error:
            raise QueueUnreachable(f"cannot run {command[0]}: {error.strerror}") from error
        finally:
            os.close(source)
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise QueueUnreachable(
                f"{name} timed out after {limit_s:g} s",
                "Check if the master runs and is not overloaded: qping -info HOST 6444 qmaster 1",
            ) from None
        answer = Answer(status=process.returncode, out=_text(out), err=_text(err))
        if answer.status and _UNREACHABLE.search(answer.words):
            raise QueueUnreachable(
                f"Grid Engine's master does not respond: {answer.words}", _unreachable_fix()
            )
        return answer

    def _program(self, name: str) -> str:
        if self._programs is not None:
            return str((self._programs / name).absolute())
        found = shutil.which(name)
        real = _DEBIAN / name
        if real.exists() and (found is None or Path(found).resolve().name == _DEBIAN_WRAPPER):
            return str(real)
        if found is None:
            raise QueueUnreachable(f"command {name} not found on this machine", _NO_COMMAND_FIX)
        return found

    @cached_property
    def environment(self) -> dict[str, str]:
        """Environment variables of the commands; those that change their output are removed."""
        return {
            name: value
            for name, value in with_cell(os.environ).items()
            if name in _CELL or not name.startswith(_CHANGING)
        }


def with_cell(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with the variables of Debian's cell, unless they are set."""
    found = dict(environment)
    if _DEBIAN.is_dir():
        defaults = _debian_defaults()
        found.setdefault("SGE_ROOT", defaults.get("SGE_ROOT", "/var/lib/gridengine"))
        found.setdefault("SGE_CELL", defaults.get("SGE_CELL", "default"))
        machine = platform.machine()
        found.setdefault("SGE_ARCH", _ARCHITECTURES.get(machine, f"lx-{machine}"))
    return found


def access_fix(words: str) -> str:
    """Return the fix if ``words`` say that this host is not a submit host; otherwise empty."""
    denied = _UNKNOWN_HOST.search(words)
    return f"On the cell's master, as a manager: qconf -as {denied[1]}" if denied else ""


def _debian_defaults() -> dict[str, str]:
    try:
        text = _DEBIAN_DEFAULTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r"^(SGE_ROOT|SGE_CELL)=['\"]?([^'\"`$\s]+)", text, re.MULTILINE))


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _unreachable_fix() -> str:
    return (
        "It may be restarting; no job is lost. Retry, or restart it on the master:"
        " systemctl restart gridengine-master"
    )
