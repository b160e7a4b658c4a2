"""Run Grid Engine's commands: find them, set their environment, kill them on a timeout."""

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
_DEBIAN_WRAPPER = "gridengine-wrapper"  # costs 100 ms a call
_ARCHITECTURES = {"x86_64": "lx-amd64", "aarch64": "lx-arm64", "i686": "lx-x86"}
_ANSWERS = {"LC_ALL": "C.UTF-8", "TZ": "UTC0"}  # not for qsub: -V would take them into the job
_UNREACHABLE = re.compile(
    r"commlib error|unable to (send message to|contact) qmaster|can't resolve host name"
    r"|cell directory .* doesn't exist|set the environment variable SGE_ROOT"
    r"|got (send|read|select) error|failed receiving gdi request|act_qmaster",
    re.IGNORECASE,
)
_UNKNOWN_HOST = re.compile(r'host "([^"]+)" is (?:neither submit nor admin|not a submit) host')
_NO_COMMAND_FIX = (
    "Install Grid Engine's client (Debian: apt-get install gridengine-client),"
    " or run this on the cluster's master or a submit host."
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
    """Runs qsub and the like; raises QueueUnreachable if the master does not answer.

    Args:
        programs: Directory of the commands; None for the site's own.
        timeout_s: Seconds that each may take.
    """

    def __init__(self, *, programs: Path | None = None, timeout_s: float = 30.0) -> None:
        self._programs = programs
        self._timeout_s = timeout_s

    def ask(self, name: str, *arguments: str) -> str:
        """Return what ``name`` prints; raises SgeJobsError when it fails."""
        answer = self.run(name, *arguments)
        if answer.status:
            said = f"{name} {' '.join(arguments)}: {answer.words}"
            raise SgeJobsError(said, access_fix(answer.words))
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
            inherit: File descriptors that it keeps open.
            timeout_s: Seconds; None for the usual.

        Raises:
            QueueUnreachable: There is no such command, no answer in time, or no master.
        """
        command = [self._program(name), *arguments]
        limit_s = self._timeout_s if timeout_s is None else timeout_s
        # A file, not a pipe: were we killed half-way, qsub would queue half a script. A session of
        # its own: Ctrl-C must not end it between queueing a job and printing its number.
        source = os.memfd_create("stdin")
        try:
            os.pwrite(source, stdin, 0)
            process = subprocess.Popen(
                command,
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment if name == "qsub" else {**self._environment, **_ANSWERS},
                pass_fds=tuple(inherit),
                start_new_session=True,
            )
        except OSError as error:
            raise QueueUnreachable(f"{command[0]} does not run: {error.strerror}") from error
        finally:
            os.close(source)
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise QueueUnreachable(
                f"{name} gave no answer in {limit_s:g} s",
                "See whether the master is up and not overloaded: qping -info HOST 6444 qmaster 1",
            ) from None
        answer = Answer(status=process.returncode, out=_text(out), err=_text(err))
        if answer.status and _UNREACHABLE.search(answer.words):
            raise QueueUnreachable(
                f"Grid Engine's master does not answer: {answer.words}", _unreachable_fix()
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
            raise QueueUnreachable(f"no command {name} on this machine", _NO_COMMAND_FIX)
        return found

    @cached_property
    def _environment(self) -> dict[str, str]:
        return with_cell(os.environ)


def with_cell(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` with the variables that name Debian's cell, where it has none."""
    found = dict(environment)
    if _DEBIAN.is_dir():
        defaults = _debian_defaults()
        found.setdefault("SGE_ROOT", defaults.get("SGE_ROOT", "/var/lib/gridengine"))
        found.setdefault("SGE_CELL", defaults.get("SGE_CELL", "default"))
        machine = platform.machine()
        found.setdefault("SGE_ARCH", _ARCHITECTURES.get(machine, f"lx-{machine}"))
    return found


def access_fix(words: str) -> str:
    """Return the fix if ``words`` say that Grid Engine does not know this host; else empty."""
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
        "It may be starting again: nothing is lost, try once more. Else, on the master:"
        " systemctl restart gridengine-master"
    )
