"""Render the shell scripts of the setup, and parse their output; runs nothing."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from starcluster.errors import StarClusterError

_FOLDER = Path(__file__).parent / "sh"


def script(name: str, values: Mapping[str, str]) -> str:
    """Return the text of a script for ``sh -s`` that starts with assignments of ``values``."""
    assignments = "".join(f"{key}={shlex.quote(value)}\n" for key, value in values.items())
    files = [(_FOLDER / f"{part}.sh").read_text() for part in ("common", *name.split("+"))]
    return assignments + "\n".join(files)


def facts(output: str) -> dict[str, list[str]]:
    """Return the facts in the output of a script, by name.

    Raises:
        StarClusterError: A fact line has no value.
    """
    found: dict[str, list[str]] = {}
    for line in output.splitlines():
        if line.startswith("fact "):
            match = re.fullmatch(r"fact (\w+) (.*)", line)
            if match is None:
                raise StarClusterError(f"invalid fact in the output of a setup script: {line}")
            found.setdefault(match[1], []).append(match[2])
    return found
