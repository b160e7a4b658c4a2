"""Parcels: each is one file with changed files of a trial, and is complete or recognised as not.

A parcel is a ZIP archive. Its directory is at its end, so a truncated one has none, and each file
in it has a checksum. This module imports only the standard library, because jobs use it too.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

END = ".parcel"
"""End of the names of parcels."""
FILES = "files/"
"""Start of the names in a parcel of the files of the user's code."""

_HEADER = "parcel.json"
_OUTPUT = "output"
_BLOCK = 1 << 20
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, TypeError, KeyError)


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

    @property
    def name(self) -> str:
        """A file name; names sort by run and number."""
        return f"{self.run:08d}-{self.number:08d}-{self.start}{END}"

    @property
    def order(self) -> tuple[int, int]:
        """Parcels with a greater order have newer files."""
        return self.run, self.number


@dataclass(frozen=True, slots=True)
class Part:
    """The bytes of a file from ``begin`` to before ``end``."""

    path: Path
    begin: int
    end: int


def write_parcel(
    path: Path, header: Header, files: Mapping[str, Path], output: Part | None = None
) -> None:
    """Write a parcel by rename.

    Args:
        path: The parcel.
        header: What it is about.
        files: By name in the parcel: a regular file, a symbolic link or an empty directory.
        output: New output of the trial.

    Raises:
        OSError: A file cannot be read, or the parcel cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        with (
            os.fdopen(os.open(part, flags, 0o600), "w+b") as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        ):
            archive.writestr(_HEADER, json.dumps(asdict(header)))
            if output is not None:
                with archive.open(_OUTPUT, "w", force_zip64=True) as target:
                    _copy_part(output, target)
            for name, source in sorted(files.items()):
                _add(archive, name, source)
        part.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def _copy_part(part: Part, target: IO[bytes]) -> None:
    with part.path.open("rb") as source:
        source.seek(part.begin)
        left = part.end - part.begin
        while left > 0 and (block := source.read(min(_BLOCK, left))):
            target.write(block)
            left -= len(block)


def _add(archive: zipfile.ZipFile, name: str, source: Path) -> None:
    mode = source.lstat().st_mode
    info = zipfile.ZipInfo(name + "/" if stat.S_ISDIR(mode) else name)
    info.external_attr, info.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    if stat.S_ISLNK(mode):
        archive.writestr(info, os.fsencode(source.readlink()))
    elif stat.S_ISDIR(mode):
        archive.writestr(info, b"")
    else:
        with source.open("rb") as file, archive.open(info, "w", force_zip64=True) as target:
            shutil.copyfileobj(file, target, _BLOCK)


def tree(directory: Path, prefix: str = FILES) -> dict[str, Path]:
    """Return the files below a directory by their names in a parcel; sockets are left out."""
    found: dict[str, Path] = {}
    for root, folders, names in os.walk(directory):
        here = Path(root)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*names, *links):
            path = here / name
            with contextlib.suppress(FileNotFoundError):
                if stat.S_IFMT(path.lstat().st_mode) in (stat.S_IFREG, stat.S_IFLNK):
                    found[prefix + path.relative_to(directory).as_posix()] = path
        if not names and not folders and here != directory:
            found[prefix + here.relative_to(directory).as_posix()] = here
    return found


class Parcel:
    """A complete parcel."""

    def __init__(self, archive: zipfile.ZipFile, header: Header) -> None:
        self._archive, self.header = archive, header

    @property
    def names(self) -> list[str]:
        """The names of its files, without those of the user's code."""
        names = self._archive.namelist()
        return [name for name in names if "/" not in name and name not in (_HEADER, _OUTPUT)]

    @property
    def has_output(self) -> bool:
        """Whether it has output of the trial."""
        return _OUTPUT in self._archive.namelist()

    def copy_output(self, target: IO[bytes]) -> None:
        """Write its output to an open file."""
        with self._archive.open(_OUTPUT) as source:
            shutil.copyfileobj(source, target, _BLOCK)

    def extract(self, name: str, target: Path) -> None:
        """Write one file by rename."""
        part = target.with_name(f".{target.name}.part")
        self._write(self._archive.getinfo(name), part)
        part.replace(target)

    def extract_files(self, directory: Path, prefix: str = FILES) -> None:
        """Write the files of the user's code below a directory."""
        directory.mkdir(parents=True, exist_ok=True)
        for info in self._archive.infolist():
            name = PurePosixPath(info.filename.removeprefix(prefix))
            if not info.filename.startswith(prefix) or not name.parts:
                continue
            if name.is_absolute() or ".." in name.parts:
                raise OSError(f"a parcel has a file outside of its directory: {name}")
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            self._write(info, target)

    def _write(self, info: zipfile.ZipInfo, target: Path) -> None:
        mode = info.external_attr >> 16
        if stat.S_ISDIR(mode):
            target.mkdir(exist_ok=True)
            return
        target.unlink(missing_ok=True)
        if stat.S_ISLNK(mode):
            target.symlink_to(os.fsdecode(self._archive.read(info)))
            return
        with self._archive.open(info) as source, target.open("xb") as file:
            shutil.copyfileobj(source, file, _BLOCK)
        target.chmod(stat.S_IMODE(mode) & 0o777 or 0o644)


@contextlib.contextmanager
def open_parcel(path: Path) -> Iterator[Parcel | None]:
    """Open and check a parcel; None if it is missing, truncated or damaged.

    Raises:
        OSError: It cannot be read.
    """
    with contextlib.ExitStack() as stack:
        yield _opened(path, stack)


def _opened(path: Path, stack: contextlib.ExitStack) -> Parcel | None:
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
        if archive.testzip() is not None:
            return None
        values: Any = json.loads(archive.read(_HEADER))
        return Parcel(archive, Header(**values))
    except (FileNotFoundError, NotImplementedError, *_BROKEN):
        return None
