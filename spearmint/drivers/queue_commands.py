"""Run the commands of a queue: what they print, whether they answer, and what jobs inherit."""

from __future__ import annotations

import os
import re
import subprocess
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spearmint.errors import DriverUnreachable

_TIMEOUT_S = 60.0  # longer than the commands' own retries
_JOBS = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TZ", "USER")
_JOBS_PREFIXES = ("LC_", "LMOD_", "MODULE")
_NAME_LENGTH = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command printed and its exit status."""

    status: int
    out: str
    err: str


def run_command(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    missing: str,
    silent: str,
    stdin: bytes = b"",
    inherit: Sequence[int] = (),
) -> Answer:
    """Run a command of a queue.

    Args:
        missing: The fix if the command does not exist on this machine.
        silent: The fix if the command times out.
        inherit: File descriptors that the command inherits.

    Raises:
        DriverUnreachable: The command does not exist, cannot start, or times out after a minute.
    """
    # A file, not a pipe: if this process is killed, the command must not submit half a job. A new
    # session: Ctrl-C must not kill it between submitting a job and printing its number.
    source = os.memfd_create("stdin")
    try:
        os.pwrite(source, stdin, 0)
        done = subprocess.run(
            argv,
            check=False,
            stdin=source,
            capture_output=True,
            env=env,
            pass_fds=tuple(inherit),
            start_new_session=True,
            timeout=_TIMEOUT_S,
        )
    except FileNotFoundError as error:
        raise DriverUnreachable(f"command {argv[0]} not found on this machine", missing) from error
    except OSError as error:
        raise DriverUnreachable(f"cannot run {argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise DriverUnreachable(f"{argv[0]} timed out after {_TIMEOUT_S:g} s", silent) from None
    finally:
        os.close(source)
    out, err = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Answer(status=done.returncode, out=out, err=err)


def job_environment(*more: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return what a job inherits of this process's environment; no key or password of the user.

    Args:
        more: Names of further variables.
        own: The environment. Default: this process's.
    """
    names = (*_JOBS, *more)
    environment = os.environ if own is None else own
    return {
        name: value
        for name, value in environment.items()
        if name in names or name.startswith(_JOBS_PREFIXES)
    }


def plain_name(label: str) -> str:
    """Return the first 80 characters of a label in ASCII, without spaces."""
    ascii = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_.+=-]+", "_", ascii)[:_NAME_LENGTH]
