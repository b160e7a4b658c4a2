"""Files of a fake node, in memory."""

from __future__ import annotations

import io
import posixpath
import stat
from dataclasses import dataclass
from pathlib import Path

_FILES = {
    "/etc/passwd": "root:x:0:0:root:/root:/bin/bash\n",
    "/etc/group": "root:x:0:\n",
    "/etc/hosts": "127.0.0.1 localhost\n",
}
_FOLDERS = ("/", "/etc", "/home", "/root", "/tmp", "/usr", "/var", "/opt")  # noqa: S108 - in memory


@dataclass
class Entry:
    """A file, or a directory if ``data`` is None."""

    data: bytes | None
    mode: int = 0o644
    st_uid: int = 0
    st_gid: int = 0

    @property
    def st_mode(self) -> int:
        """File type and permissions, as in ``os.stat``."""
        return (stat.S_IFDIR if self.data is None else stat.S_IFREG) | self.mode

    @property
    def st_size(self) -> int:
        """Size of the file in bytes."""
        return len(self.data or b"")


class _OpenFile(io.BytesIO):
    def __init__(self, entry: Entry, mode: str) -> None:
        super().__init__(b"" if mode[0] == "w" else entry.data or b"")
        if mode[0] == "a":
            self.seek(0, io.SEEK_END)
        self._entry, self._writes = entry, mode[0] in "wa"

    def chmod(self, mode: int) -> None:
        self._entry.mode = mode

    def chown(self, uid: int, gid: int) -> None:
        self._entry.st_uid, self._entry.st_gid = uid, gid

    def close(self) -> None:
        if self._writes and not self.closed:
            self._entry.data = self.getvalue()
        super().close()


class FakeSftp:
    """Files in memory, with the methods of :class:`starcluster.node.files.Sftp`."""

    def __init__(self) -> None:
        self.entries = {folder: Entry(None, 0o755) for folder in _FOLDERS}
        self.entries |= {path: Entry(text.encode()) for path, text in _FILES.items()}

    def _entry(self, path: str) -> Entry:
        try:
            return self.entries[posixpath.normpath(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file", path) from None

    def open(self, filename: str, mode: str = "r") -> _OpenFile:
        """Open a file; modes ``w`` and ``a`` require that its directory exists."""
        if mode[0] != "r":
            self._entry(posixpath.dirname(filename) or "/")
            self.entries.setdefault(posixpath.normpath(filename), Entry(b""))
        return _OpenFile(self._entry(filename), mode)

    def stat(self, path: str) -> Entry:
        """Return mode and owner of a path."""
        return self._entry(path)

    def listdir(self, path: str = ".") -> list[str]:
        """Return the names in a directory."""
        self._entry(path)
        above = posixpath.normpath(path)
        return [
            posixpath.basename(name)
            for name in self.entries
            if posixpath.dirname(name) == above and name != "/"
        ]

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        """Create a directory. Raises OSError if the path exists."""
        self._entry(posixpath.dirname(path.rstrip("/")) or "/")
        if posixpath.normpath(path) in self.entries:
            raise OSError("Failure")
        self.entries[posixpath.normpath(path)] = Entry(None, mode)

    def chmod(self, path: str, mode: int) -> None:
        """Set the mode of a path."""
        self._entry(path).mode = mode

    def chown(self, path: str, uid: int, gid: int) -> None:
        """Set owner and group of a path."""
        entry = self._entry(path)
        entry.st_uid, entry.st_gid = uid, gid

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._entry(path)
        del self.entries[posixpath.normpath(path)]

    def posix_rename(self, oldpath: str, newpath: str) -> None:
        """Rename a file; replace an existing one."""
        self.entries[newpath] = self.entries.pop(oldpath)

    def put(self, localpath: str, remotepath: str) -> None:
        """Copy a file from this machine."""
        with self.open(remotepath, "w") as file:
            file.write(Path(localpath).read_bytes())

    def get(self, remotepath: str, localpath: str) -> None:
        """Copy a file to this machine."""
        Path(localpath).write_bytes(self._entry(remotepath).data or b"")
