"""Read a text file: decompress it, decode it, and use one kind of line end."""

from __future__ import annotations

import codecs
import importlib
import shlex
import zlib
from pathlib import Path
from typing import Any

from pycuda_nn.errors import UnreadableFile

COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # Python can be built without them
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_text(path: Path) -> str:
    r"""Return the text of a file with ``\n`` as line end, without a byte order mark.

    Raises:
        UnreadableFile: The file cannot be read, is damaged, or is not UTF-8 or UTF-16 text.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableFile(f"{path}: cannot read: {error.strerror}") from error
    if path.suffix.lower() in COMPRESSIONS:
        data = _decompressed(data, path)
    coding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    try:
        text = data.decode(coding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(
            f"{path}: not UTF-8 text (byte {error.start}, line {line})", _fix(path)
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _decompressed(data: bytes, path: Path) -> bytes:
    try:
        library: Any = importlib.import_module(COMPRESSIONS[path.suffix.lower()])
    except ImportError as error:
        raise UnreadableFile(
            f"{path}: this Python cannot read {path.suffix}: {error}", "Decompress the file."
        ) from error
    damaged = (OSError, EOFError, ValueError, zlib.error, getattr(library, "LZMAError", OSError))
    try:
        content: bytes = library.decompress(data)
    except damaged as error:
        raise UnreadableFile(
            f"{path}: cannot decompress as {path.suffix}: {error}",
            "The file is damaged, or its name is wrong: copy or rename it.",
        ) from error
    return content


def _fix(path: Path) -> str:
    if path.suffix.lower() in COMPRESSIONS:
        return "Decompress the file, and save it as CSV in UTF-8."
    copy = path.with_name(f"{path.stem}_utf8{path.suffix}")
    return (
        "If it was saved as Windows or Latin-1 text, convert it: iconv -f WINDOWS-1252 -t UTF-8 "
        f"{shlex.quote(str(path))} > {shlex.quote(str(copy))}"
    )
