"""Have the files of imported modules changed?"""

from __future__ import annotations

import contextlib
import os
import sys
import sysconfig
import time

_INSTALLED_S = 1.0
_Stamp = tuple[int, int]
_ROOTS = tuple(
    f"{sysconfig.get_path(name)}{os.sep}" for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def is_installed(path: str | None) -> bool:
    """Return whether a file belongs to Python or to an installed package."""
    return path is not None and path.startswith(_ROOTS)


class ImportedFiles:
    """The files of all imported modules: have they changed since the import?

    Each call reads the files of the user's directories. It reads those of installed packages, a
    thousand or more, at most once a second.
    """

    def __init__(self) -> None:
        self._installed: dict[str, _Stamp] = {}
        self._own: dict[str, _Stamp] = {}
        self._read_at = time.monotonic()
        self.add_imported()

    def add_imported(self) -> None:
        """Add the files of modules that were imported since."""
        for path, stamp in _stamps().items():
            (self._installed if is_installed(path) else self._own).setdefault(path, stamp)

    def have_changed(self) -> bool:
        """Return whether the size or the time of a file is another one."""
        if any(_stamp(path, fresh=True) != stamp for path, stamp in self._own.items()):
            return True
        if time.monotonic() - self._read_at < _INSTALLED_S:
            return False
        self._read_at = time.monotonic()
        return any(_stamp(path) != stamp for path, stamp in self._installed.items())


def _stamps() -> dict[str, _Stamp]:
    """Return size and time of the files of all imported modules."""
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {path: stamp for path in paths if path and (stamp := _stamp(path))}


def _stamp(path: str, *, fresh: bool = False) -> _Stamp | None:
    """Return time and size of a file; ``fresh`` makes a network file system ask its server."""
    with contextlib.suppress(OSError):
        if fresh:
            os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        status = os.stat(path)  # noqa: PTH116 - a thousand files before a trial
        return status.st_mtime_ns, status.st_size
    return None
