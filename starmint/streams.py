"""Standard streams that the caller closed, or whose encoding lacks characters."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import TextIO

__all__ = ["allow_any_text", "open_closed_streams"]


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
