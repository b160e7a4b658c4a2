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
_OTHER_FORMATS = {  # first bytes, and what they are
    b"\x1f\x8b": ("compressed with gzip", "Rename it to .csv.gz, or decompress it."),
    b"PK\x03\x04": ("a zip archive or an Excel workbook", "Save it as CSV, or unzip it."),
    b"\xd0\xcf\x11\xe0": ("an Excel workbook", "Save it as CSV."),
    b"PAR1\x15": ("a Parquet file", "Rename it to .parquet."),
}


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
    _check_format(data, path)
    try:
        text = data.decode(_coding(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFile(
            f"{path}: not UTF-8 text (byte {error.start}, line {line})", _fix(path)
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UnreadableFile(
            f"{path}, line {line}: a zero byte", "The file is damaged or not text: copy it again."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _check_format(data: bytes, path: Path) -> None:
    for start, (format_, fix) in _OTHER_FORMATS.items():
        if data.startswith(start):
            raise UnreadableFile(f"{path}: {format_}, not text", fix)


def _coding(data: bytes) -> str:
    """Return the encoding; UTF-16 without its mark has a zero byte next to each ASCII character."""
    if data.startswith(_UTF16):
        return "utf-16"
    start = data[:2]
    if len(start) == 2 and len(data) % 2 == 0 and start.count(0) == 1:
        return "utf-16-be" if start[0] == 0 else "utf-16-le"
    return "utf-8-sig"


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
