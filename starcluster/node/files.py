"""Files on a node, as plugins handle them: a part of ``node.ssh``."""

# ruff: noqa: D102

from __future__ import annotations

import errno
import fnmatch
import posixpath
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from starcluster.errors import InputError


class Sftp(Protocol):
    """The methods of paramiko's SFTP client that are used here."""

    def open(self, filename: str, mode: str = "r") -> Any: ...
    def stat(self, path: str) -> Any: ...
    def listdir(self, path: str = ".") -> list[str]: ...
    def mkdir(self, path: str, mode: int = 0o777) -> None: ...
    def chmod(self, path: str, mode: int) -> None: ...
    def chown(self, path: str, uid: int, gid: int) -> None: ...
    def remove(self, path: str) -> None: ...
    def posix_rename(self, oldpath: str, newpath: str) -> None: ...
    def put(self, localpath: str, remotepath: str) -> Any: ...
    def get(self, remotepath: str, localpath: str) -> None: ...


class OneAtATime:
    """An SFTP session or an open file that one thread uses at a time.

    Without this lock paramiko loses answers.
    """

    def __init__(self, inner: Any, lock: Any) -> None:
        self._inner, self._lock = inner, lock

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        def call(*arguments: Any) -> Any:
            with self._lock:
                result = method(*arguments)
            return OneAtATime(result, self._lock) if name == "open" else result

        return call


class RemoteFile:
    """An open file of a node; a text file unless its mode contains ``b``."""

    def __init__(self, file: Any, name: str, *, binary: bool) -> None:
        self.name = name
        self._file = file
        self._binary = binary

    def __enter__(self) -> RemoteFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self.readlines())

    def read(self, size: int | None = None) -> Any:
        """Return the rest of the file, or ``size`` bytes of it."""
        return self._out(self._file.read(size))

    def readline(self) -> Any:
        """Return the next line with its line end."""
        return self._out(self._file.readline())

    def readlines(self) -> list[Any]:
        """Return the remaining lines with their line ends."""
        return self._out(self._file.read()).splitlines(True)  # type: ignore[no-any-return]

    def write(self, data: str | bytes) -> None:
        """Write ``data``; text as UTF-8."""
        self._file.write(data.encode() if isinstance(data, str) else data)

    def writelines(self, lines: Iterable[str | bytes]) -> None:
        """Write ``lines``; no line ends are added."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Send buffered data to the node."""
        self._file.flush()

    def chmod(self, mode: int) -> None:
        """Set the file's mode."""
        self._file.chmod(mode)

    def chown(self, uid: int, gid: int) -> None:
        """Set the file's owner and group."""
        self._file.chown(uid, gid)

    def close(self) -> None:
        """Close the file; all data has been written."""
        self._file.close()

    def _out(self, data: bytes | str) -> Any:
        if self._binary or isinstance(data, str):
            return data
        return data.decode(errors="replace")


class RemoteFiles:
    """Files of one node, over :attr:`sftp`."""

    @property
    def sftp(self) -> Sftp:
        """The SFTP session, opened when first used."""
        raise NotImplementedError

    def remote_file(self, file: str, mode: str = "w") -> RemoteFile:
        """Open a file of the node; ``mode`` as in the built-in ``open``."""
        return RemoteFile(self.sftp.open(file, mode), file, binary="b" in mode)

    def write_file(self, path: str, data: str | bytes, mode: int = 0o644) -> None:
        """Replace a file atomically: readers see the old or the new content, never a part."""
        new = f"{path}.starcluster-new"
        with self.remote_file(new, "wb") as file:
            file.chmod(mode)
            file.write(data)
        self.sftp.posix_rename(new, path)

    def read_file(self, path: str) -> str:
        """Return the text of a file."""
        with self.remote_file(path, "r") as file:
            return str(file.read())

    def stat(self, path: str) -> Any:
        """Return mode, owner and size of a path as ``os.stat`` does; raises FileNotFoundError."""
        return self.sftp.stat(path)

    def path_exists(self, path: str) -> bool:
        """Return whether ``path`` exists."""
        return self._mode(path) is not None

    def isdir(self, path: str) -> bool:
        """Return whether ``path`` is a directory."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISDIR(mode)

    def isfile(self, path: str) -> bool:
        """Return whether ``path`` is a regular file."""
        mode = self._mode(path)
        return mode is not None and stat.S_ISREG(mode)

    def ls(self, path: str) -> list[str]:
        """Return the paths of a directory's entries, sorted by name."""
        return [posixpath.join(path, name) for name in sorted(self.sftp.listdir(path))]

    def mkdir(self, path: str, mode: int = 0o755, ignore_failure: bool = False) -> None:
        """Create a directory; raises OSError unless ``ignore_failure``."""
        try:
            self.sftp.mkdir(path, mode)
        except OSError:
            if not ignore_failure:
                raise

    def makedirs(self, path: str, mode: int = 0o755) -> None:
        """Create a directory and its parents; existing directories do not change."""
        if self.isdir(path):
            return
        above = posixpath.dirname(path.rstrip("/"))
        if above and above != path:
            self.makedirs(above, mode)
        try:
            self.sftp.mkdir(path, mode)
        except OSError:
            if not self.isdir(path):
                raise

    def chmod(self, mode: int, path: str) -> None:
        """Set the mode of a path."""
        self.sftp.chmod(path, mode)

    def chown(self, uid: int, gid: int, path: str) -> None:
        """Set owner and group of a path, by number."""
        self.sftp.chown(path, uid, gid)

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self.sftp.remove(path)

    def get_remote_file_lines(
        self, remote_file: str, regex: str | None = None, matching: bool = True
    ) -> list[str]:
        """Return the lines of a file with their line ends.

        Args:
            regex: Return only lines that it matches anywhere.
            matching: If False, return only lines that ``regex`` does not match.
        """
        lines = self.read_file(remote_file).splitlines(True)
        if regex is None:
            return lines
        return [line for line in lines if bool(re.search(regex, line)) == matching]

    def remove_lines_from_file(self, remote_file: str, regex: str) -> None:
        """Remove the lines that ``regex`` matches anywhere; the file keeps its mode and owner."""
        kept = "".join(self.get_remote_file_lines(remote_file, regex, matching=False))
        with self.remote_file(remote_file, "w") as file:
            file.write(kept)

    def put(self, localpaths: str | Path | Iterable[str | Path], remotepath: str = ".") -> None:
        """Copy files and whole directories to the node.

        Args:
            remotepath: An existing directory, or the path of the copy if there is only one.
        """
        sources = _as_list(localpaths)
        into = self.isdir(remotepath)
        if len(sources) > 1 and not into:
            raise InputError(f"{remotepath} is not a directory on the node", "Create it first.")
        for source in map(Path, sources):
            name = source.resolve().name
            self._put(source, posixpath.join(remotepath, name) if into else remotepath)

    def _put(self, source: Path, target: str) -> None:
        if not source.is_dir():
            self.sftp.put(str(source), target)
            self.sftp.chmod(target, stat.S_IMODE(source.stat().st_mode))
            return
        self.makedirs(target)
        for below in sorted(source.iterdir()):
            self._put(below, posixpath.join(target, below.name))

    def get(self, remotepaths: str | Iterable[str], localpath: str | Path = "") -> None:
        """Copy files and whole directories from the node; paths can have ``*``, ``?`` and ``[]``.

        Args:
            localpath: An existing directory, or the path of the copy if there is only one.
        """
        found = [path for given in _as_list(remotepaths) for path in self.glob(str(given))]
        target = Path(localpath or ".")
        if len(found) > 1 and not target.is_dir():
            raise InputError(f"{target} is not a directory", f"Create it first: mkdir {target}")
        for path in found:
            name = posixpath.basename(path.rstrip("/")) or "root"
            self._get(path, target / name if target.is_dir() else target)

    def _get(self, source: str, target: Path) -> None:
        if self.isdir(source):
            target.mkdir(parents=True, exist_ok=True)
            for below in self.ls(source):
                self._get(below, target / posixpath.basename(below))
        else:
            self.sftp.get(source, str(target))

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match; raises FileNotFoundError if none does."""
        found = self._glob(pattern)
        if not found:
            raise FileNotFoundError(errno.ENOENT, "no such file on the node", pattern)
        return found

    def _glob(self, pattern: str) -> list[str]:
        if self.path_exists(pattern):
            return [pattern]
        if not re.search(r"[*?[]", pattern):
            return []
        above, name = posixpath.split(pattern.rstrip("/"))
        found = []
        for folder in self._glob(above) if above else ["."]:
            if self.isdir(folder):
                names = fnmatch.filter(sorted(self.sftp.listdir(folder)), name)
                hidden = name.startswith(".")
                found += [
                    posixpath.join(folder, entry) if above else entry
                    for entry in names
                    if hidden or not entry.startswith(".")
                ]
        return found

    def _mode(self, path: str) -> int | None:
        try:
            return int(self.sftp.stat(path).st_mode)
        except FileNotFoundError:
            return None


def _as_list(paths: Any) -> list[Any]:
    return [paths] if isinstance(paths, str | Path) else list(paths)
