"""Standard streams that are closed, lack characters in their encoding, or are very narrow."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import sys
from typing import Any, TextIO

__all__ = ["allow_any_text", "help_width", "open_closed_streams"]

_COLUMNS = 40


def open_closed_streams() -> None:
    """Open the null device for each closed standard stream.

    Otherwise the next file that the command opens has its number, and what a library or another
    process prints goes into that file.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number
        if getattr(sys, name) is None:
            stream = open(number, "w" if number else "r", encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def allow_any_text(stream: TextIO) -> None:
    """Let a stream print any character: as click does in ASCII, escaped in other encodings."""
    if not isinstance(stream, io.TextIOWrapper):
        return
    if codecs.lookup(stream.encoding).name == "ascii":
        stream.reconfigure(encoding="utf-8")
    stream.reconfigure(errors="backslashreplace")


def help_width() -> dict[str, Any]:
    """Return settings for click, whose help fails in a terminal of less than 10 columns."""
    is_narrow = shutil.get_terminal_size().columns < _COLUMNS
    return {"terminal_width": _COLUMNS} if is_narrow else {}
