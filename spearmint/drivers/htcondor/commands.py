"""Run HTCondor's commands, and recognise a schedd or collector that does not answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from spearmint.drivers.queue_commands import Answer, run_command
from spearmint.errors import DriverError, DriverUnreachable

_UNREACHABLE = re.compile(
    r"SECMAN:|Failed to (fetch ads|connect|end classad|commit)|Can't find address|unknown schedd"
    r"|Couldn't (contact|connect|locate)|Connection (closed|refused)|AUTHENTICATE:|timed out"
    r"|No result found for job|CONDOR_CONFIG|Unable to (query|locate|connect)|communication error",
    re.IGNORECASE,
)
_FIX = (
    "It may be restarting; no job is lost. See: condor_status -schedd."
    " Restart it as root: systemctl restart condor"
)
_MISSING = (
    "Run this on a host of the pool that submits jobs (Debian 13: apt-get install condor; "
    "Ubuntu: apt-get install htcondor)."
)


def ask(name: str, *arguments: str, stdin: bytes = b"", inherit: Sequence[int] = ()) -> Answer:
    """Run a command of HTCondor.

    Args:
        inherit: File descriptors that the command inherits.

    Raises:
        DriverUnreachable: The command does not exist or times out, or a daemon does not answer.
    """
    answer = run_command(
        [name, *arguments],
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        missing=_MISSING,
        silent=_FIX,
        stdin=stdin,
        inherit=inherit,
    )
    if answer.status and _UNREACHABLE.search(answer.out + answer.err):
        raise DriverUnreachable(f"HTCondor does not respond: {words(answer)}", _FIX)
    return answer


def checked(name: str, *arguments: str) -> str:
    """Return what a command printed; raises DriverError if it failed."""
    answer = ask(name, *arguments)
    if answer.status:
        raise DriverError(f"{name} failed: {words(answer)}")
    return answer.out


def ads(name: str, *arguments: str, attributes: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the ClassAds that a command prints with ``-json``.

    Raises:
        DriverError: The command failed, or printed something else.
    """
    text = checked(name, *arguments, "-json", "-attributes", ",".join(attributes)).strip()
    try:
        found = json.loads(text or "[]")  # nothing if there is no ad
    except ValueError as error:
        raise DriverError(f"{name} printed no JSON: {text[:200]!r}") from error
    return [ad for ad in found if isinstance(ad, dict)]


def words(answer: Answer) -> str:
    """Return what a command printed as one line."""
    lines = (answer.err + "\n" + answer.out).splitlines()
    plain = (re.sub(r"^(-- |error: )+", "", line.strip(), flags=re.IGNORECASE) for line in lines)
    return "; ".join(dict.fromkeys(filter(None, plain)))
