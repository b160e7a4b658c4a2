"""The output of programs, fit to be shown."""

from __future__ import annotations

import re

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Return the output of a program without colours and control characters."""
    return _CONTROL.sub("\N{MIDDLE DOT}", _ANSI.sub("", text.replace("\r\n", "\n")))


def indented(text: str, by: str = "  ") -> str:
    """Return the lines of ``text``, plain, each behind ``by``."""
    return "\n".join(f"{by}{plain(line)}" for line in text.splitlines())
