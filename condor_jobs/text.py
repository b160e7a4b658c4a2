"""Names and values in the files of HTCondor."""

from __future__ import annotations

import re
from pathlib import Path

from condor_jobs.errors import InputError

_COMMAND = re.compile(r"(?:\+|MY\.)?[A-Za-z_][A-Za-z0-9_.]*", re.IGNORECASE)


def plain_name(text: str) -> str:
    """Return a name for a node and a folder, without characters that mean something."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text).strip(".") or "_"


def require_plain(path: Path) -> str:
    """Return a path as the value of a submit command; raises InputError if it cannot be one."""
    text = str(path)
    if re.search(r"[\r\n\0\",]|\$\$?\(|^\s|\s$", text):
        raise InputError(f"HTCondor cannot use the name {text!r}", "Rename the directory.")
    return text


def quoted(*arguments: str) -> str:
    """Return arguments in HTCondor's own quotation."""
    words = ("'" + word.replace("'", "''").replace('"', '""') + "'" for word in arguments)
    return ('"' + " ".join(words) + '"').replace("$", "$(DOLLAR)")


def request(text: str) -> tuple[str, str]:
    """Return ``NAME=VALUE`` as a submit command; raises InputError."""
    name, equals, value = (part.strip() for part in text.partition("="))
    is_wrong = not equals or not _COMMAND.fullmatch(name) or name.lower() == "queue"
    if is_wrong or any(c in value for c in "\r\n\0") or value.endswith("\\"):
        raise InputError(
            f"cannot request {text!r}", "Expected a submit command: -l request_memory=16G"
        )
    return name, value
