"""Parcels: each is one file with changed files of a trial, and is complete or recognised as not.

A parcel is a ZIP archive. Its directory is at its end, so a truncated one has none, and each file
in it has a checksum. This module imports only the standard library, because jobs use it too.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

END = ".parcel"
"""End of the names of parcels."""
FILES = "files/"
"""Start of the names in a parcel of the files of the user's code."""

HEADER, OUTPUT = "parcel.json", "output"
"""Names in a parcel of its header and of the output of the trial."""

BLOCK = 1 << 20
"""Bytes that are read and written at once."""

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError)
_MOST_RUNS, _MOST_BYTES = 10**8, 1 << 62  # names have 8 digits; positions in files have 63 bits


class BadParcel(OSError):
    """A parcel is complete, but its header, a name or a file is not one that a job writes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a parcel is about.

    Attributes:
        key: Key of the trial's attempt, as in its result.
        run: Number of the run of the trial's job, from 1; 0 for files of the submit side.
        start: Random text that identifies the run.
        number: Number of the parcel in the run, from 1.
        offset: Position in the run's output of the output in this parcel.
        has_files: Whether it has all files of the user's code; otherwise it has none.
    """

    key: str
    run: int = 0
    start: str = ""
    number: int = 0
    offset: int = 0
    has_files: bool = False

    def __post_init__(self) -> None:
        counts = (self.run, self.number)
        is_valid = (
            all(type(count) is int and 0 <= count < _MOST_RUNS for count in counts)
            and type(self.offset) is int
            and 0 <= self.offset < _MOST_BYTES
            and isinstance(self.key, str)
            and isinstance(self.start, str)
            and re.fullmatch(r"[0-9A-Za-z]{,64}", self.start) is not None
            and isinstance(self.has_files, bool)
        )
        if not is_valid:
            raise BadParcel("the header of a parcel is wrong")

    @property
    def name(self) -> str:
        """A file name; names sort by run and number."""
        return f"{self.run:08d}-{self.number:08d}-{self.start}{END}"

    @property
    def order(self) -> tuple[int, int]:
        """Parcels with a greater order have newer files."""
        return self.run, self.number


class Parcel:
    """A complete parcel."""

    def __init__(self, archive: zipfile.ZipFile, header: Header) -> None:
        self._archive, self.header = archive, header
        self._top: dict[str, zipfile.ZipInfo] = {}
        for info in archive.infolist():
            if "/" not in info.filename and info.filename not in (HEADER, OUTPUT):
                self._top[_name_of(info)] = info

    @property
    def names(self) -> list[str]:
        """The names of its files, without those of the user's code."""
        return list(self._top)

    @property
    def has_output(self) -> bool:
        """Whether it has output of the trial."""
        return OUTPUT in self._archive.namelist()

    def copy_output(self, target: IO[bytes]) -> None:
        """Write its output to an open file."""
        with self._archive.open(OUTPUT) as source:
            shutil.copyfileobj(source, target, BLOCK)

    def extract(self, name: str, target: Path) -> None:
        """Write one file by rename.

        Raises:
            BadParcel: It is hidden or not a regular file.
        """
        info = self._top[name]
        if name.startswith(".") or stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
            raise BadParcel(f"a parcel has a file that no job sends: {name!r}")
        part = target.with_name(f".{target.name}.part")
        self._write(info, part)
        part.replace(target)

    def extract_files(self, directory: Path, prefix: str = FILES) -> None:
        """Write the files of the user's code, with their modes and times, to a new directory.

        Raises:
            BadParcel: A file would be outside of the directory.
            OSError: A file cannot be written.
        """
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = _below(self._archive, prefix)
        folders = {parts for parts, info in found.items() if _is_folder(info)}
        for parts in found:
            parents = {parts[:depth] for depth in range(1, len(parts))}
            if not folders.issuperset(parents & found.keys()):
                raise BadParcel(f"a parcel has a file below a file: {'/'.join(parts)!r}")
            folders |= parents
        for parts in sorted(folders):
            (directory / Path(*parts)).mkdir(mode=0o700, exist_ok=True)
        others = [parts for parts in found if parts not in folders]
        for parts in sorted(others, key=lambda parts: _is_link(found[parts])):
            target = directory / Path(*parts)
            self._write(found[parts], target)
            _set_time(found[parts], target)
        for parts in sorted(folders & found.keys(), reverse=True):
            target = directory / Path(*parts)
            target.chmod(found[parts].external_attr >> 16 & 0o777 | 0o700)
            _set_time(found[parts], target)

    def _write(self, info: zipfile.ZipInfo, target: Path) -> None:
        mode = info.external_attr >> 16
        target.unlink(missing_ok=True)
        if _is_link(info):
            text = self._archive.read(info)
            if not text or b"\0" in text:
                raise BadParcel("a parcel has a link without a target")
            target.symlink_to(os.fsdecode(text))
            return
        new = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(new, "wb") as file, self._archive.open(info) as source:
            shutil.copyfileobj(source, file, BLOCK)
            os.fchmod(file.fileno(), mode & 0o777 or 0o644)


def _below(archive: zipfile.ZipFile, prefix: str) -> dict[tuple[str, ...], zipfile.ZipInfo]:
    """Return what is below ``prefix`` by the parts of its name; () for the directory itself."""
    found: dict[tuple[str, ...], zipfile.ZipInfo] = {}
    for info in archive.infolist():
        if not info.filename.startswith(prefix):
            continue
        name = PurePosixPath(_name_of(info).removeprefix(prefix))
        if name.is_absolute() or ".." in name.parts:
            raise BadParcel(f"a parcel has a file outside of its directory: {str(name)!r}")
        if name.parts in found or not (name.parts or _is_folder(info)):
            raise BadParcel(f"a parcel has a file twice: {str(name)!r}")
        found[name.parts] = info
    return found


def _name_of(info: zipfile.ZipInfo) -> str:
    try:
        return os.fsdecode(info.filename.encode("latin-1"))
    except ValueError as error:
        raise BadParcel(f"a parcel has a wrong name: {info.filename!r}") from error


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return stat.S_ISDIR(info.external_attr >> 16)


def _is_link(info: zipfile.ZipInfo) -> bool:
    return stat.S_ISLNK(info.external_attr >> 16)


def _set_time(info: zipfile.ZipInfo, path: Path) -> None:
    """Set when a file was last changed; user code can look for its newest checkpoint."""
    if not info.comment:
        return
    try:
        changed = int(info.comment)
        os.utime(path, ns=(changed, changed), follow_symlinks=False)
    except (ValueError, OverflowError) as error:
        raise BadParcel(f"a parcel has a wrong time: {info.comment!r}") from error


@contextlib.contextmanager
def open_parcel(path: Path) -> Iterator[Parcel | None]:
    """Open and check a parcel; None if it is missing, truncated or damaged.

    Raises:
        BadParcel: It is complete, but not from a job.
        OSError: It cannot be read.
    """
    with contextlib.ExitStack() as stack:
        yield _opened(path, stack)


def _opened(path: Path, stack: contextlib.ExitStack) -> Parcel | None:
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        if archive.testzip() is not None:
            return None
    except (FileNotFoundError, *_BROKEN):
        return None
    try:
        values: Any = json.loads(archive.read(HEADER))
        return Parcel(archive, Header(**values))
    except (ValueError, TypeError, KeyError) as error:
        raise BadParcel(f"the header of a parcel is wrong: {error}") from error
