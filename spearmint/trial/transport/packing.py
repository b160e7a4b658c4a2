"""Write parcels. This module imports only the standard library, because jobs use it too."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from spearmint.trial.transport.parcel import BLOCK, FILES, HEADER, OUTPUT, Header

_LARGE = 8 << 20  # a file of this size is compressed only if its first block is worth it
_WORTH = 0.8


class Interrupted(OSError):
    """The parcel was not written, because the caller has asked to stop."""


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes of a file from ``begin`` to before ``end``."""

    path: Path
    begin: int
    end: int


def write_parcel(
    path: Path,
    header: Header,
    files: Mapping[str, Path],
    output: Part | None = None,
    *,
    method: int = zipfile.ZIP_DEFLATED,
    stops: Callable[[], bool] = bool,
) -> None:
    """Write a parcel by rename: output first, then files from the smallest to the largest.

    Args:
        path: The parcel.
        header: What it is about.
        files: By name in the parcel: a regular file, a symbolic link or a directory.
        output: New output of the trial.
        method: How to compress: a constant of zipfile.
        stops: Returns whether to stop; called before each MiB.

    Raises:
        Interrupted: ``stops`` returned true.
        OSError: A file cannot be read, or the parcel cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with (
            os.fdopen(os.open(part, flags, 0o600), "w+b") as file,
            zipfile.ZipFile(file, "w", method, compresslevel=1) as archive,
        ):
            archive.writestr(HEADER, json.dumps(asdict(header)))
            if output is not None:
                with output.path.open("rb") as source:
                    source.seek(output.begin)
                    with archive.open(OUTPUT, "w", force_zip64=True) as target:
                        _copy(source, target, stops, output.end - output.begin)
            for name, source_path in sorted(files.items(), key=_size_and_name):
                _add(archive, name, source_path, stops)
        part.replace(path)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _size_and_name(item: tuple[str, Path]) -> tuple[int, str]:
    name, path = item
    status = path.lstat()
    return status.st_size if stat.S_ISREG(status.st_mode) else 0, name


def _copy(
    source: IO[bytes], target: IO[bytes], stops: Callable[[], bool], left: int | None = None
) -> None:
    """Copy ``left`` bytes, or all."""
    while left is None or left > 0:
        if stops():
            raise Interrupted("the parcel is not needed any more")
        block = source.read(BLOCK if left is None else min(BLOCK, left))
        if not block:
            return
        target.write(block)
        left = None if left is None else left - len(block)


def _add(archive: zipfile.ZipFile, name: str, source: Path, stops: Callable[[], bool]) -> None:
    status = source.lstat()
    mode = status.st_mode
    stored = os.fsencode(name).decode("latin-1")  # a name can have bytes that are not UTF-8
    info = zipfile.ZipInfo(stored + "/" if stat.S_ISDIR(mode) else stored)
    info.external_attr, info.compress_type = mode << 16, archive.compression
    info.comment = str(status.st_mtime_ns).encode()
    if stat.S_ISLNK(mode):
        archive.writestr(info, os.fsencode(source.readlink()))
    elif stat.S_ISDIR(mode):
        archive.writestr(info, b"")
    else:
        with source.open("rb") as file:
            if status.st_size >= _LARGE and not _is_worth_compressing(file):
                info.compress_type = zipfile.ZIP_STORED
            with archive.open(info, "w", force_zip64=True) as target:
                _copy(file, target, stops)


def _is_worth_compressing(file: IO[bytes]) -> bool:
    """Return whether the first block shrinks; weights of networks hardly do, and take long."""
    block = file.read(BLOCK)
    file.seek(0)
    return len(zlib.compress(block, 1)) < _WORTH * len(block)


def tree(directory: Path, prefix: str = FILES) -> dict[str, Path]:
    """Return a directory and what it contains by their names in a parcel, without sockets."""
    found: dict[str, Path] = {}
    for root, folders, names in os.walk(directory):
        here = Path(root)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*names, *links):
            path = here / name
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                    found[prefix + path.relative_to(directory).as_posix()] = path
        below = here.relative_to(directory).as_posix()
        found[prefix.rstrip("/") if here == directory else prefix + below] = here
    return found
