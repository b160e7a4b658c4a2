"""Why a trial failed, in one line; only the standard library."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any

from spearmint.trial import objective
from spearmint.trial.gpu_memory import OUT_OF_MEMORY, is_out_of_gpu_memory
from spearmint.trial.outputs import BadResult

MOST_REASON = 2000
_STRICT = ("strict", "surrogateescape")  # of streams that do not accept all letters


def failure_of(error: BaseException, directory: Path) -> dict[str, Any]:
    """Return the part of result.json about what the user's code raised; print its traceback.

    Args:
        error: The exception.
        directory: The experiment's directory; the reason names the line of a file in it.
    """
    if isinstance(error, BadResult):
        return {"reason": str(error), **error.details}
    if isinstance(error, SystemExit):
        return {"reason": f"called sys.exit({error.code!r})"[:MOST_REASON]}
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exception(error.with_traceback(_user_part(error.__traceback__)))
    found = {OUT_OF_MEMORY: True} if is_out_of_gpu_memory(error) else {}
    return {"reason": _describe(error, directory), **found}


def print_every_character() -> None:
    """Let user code print letters that the locale of the host lacks, as backslash sequences.

    In the C locale, the streams accept only surrogates for bytes that could not be decoded.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors in _STRICT:
            stream.reconfigure(errors="backslashreplace")


def _user_part(trace: TracebackType | None) -> TracebackType | None:
    """Return ``trace`` without the frames of this package before the user's code."""
    here = Path(__file__).parent
    part = trace
    while part is not None and here in Path(part.tb_frame.f_code.co_filename).parents:
        part = part.tb_next
    found = part
    while part is not None:
        if part.tb_frame.f_code.co_filename == objective.__file__ and part.tb_next is not None:
            found = part.tb_next
        part = part.tb_next
    return found or trace


def _describe(error: BaseException, directory: Path) -> str:
    """Return the error in one line, with file and line of the user's code."""
    shown = traceback.TracebackException.from_exception(error)
    shown.__notes__ = None  # otherwise they follow the message
    text = list(shown.format_exception_only())[-1].strip().splitlines() or [type(error).__name__]
    frames = traceback.extract_tb(_user_part(error.__traceback__))
    own = [frame for frame in frames if Path(frame.filename).parent == directory]
    own = own or [frame for frame in frames if not _is_installed(Path(frame.filename))]
    place = f" ({_source(Path(own[-1].filename))}:{own[-1].lineno})" if own else ""
    return text[0][:MOST_REASON].encode(errors="replace").decode() + place


def _is_installed(file: Path) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    packages = {Path(os.__file__).parent, Path(__file__).parents[1]}
    return bool(packages.intersection(file.parents)) or "site-packages" in file.parts


def _source(file: Path) -> str:
    """Return the name of a file in messages."""
    return "cell" if file.parent.name.startswith("ipykernel_") else file.name
