"""The file with the result of a trial, whose disk space is reserved before the trial starts."""

from __future__ import annotations

import json
import os
from pathlib import Path

from spearmint.layout import write_json

_RESERVED_BYTES = 16384


class ResultFile:
    """The file result.json. Its disk space is reserved before the trial starts.

    A trial that fills the disk therefore does not lose its own result.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._pid = path, os.getpid()
        self._temporary = path.with_name(f".{path.name}.{self._pid}")
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._fd = os.open(self._temporary, flags, 0o644)
        os.pwrite(self._fd, b" " * _RESERVED_BYTES, 0)

    def discard(self) -> None:
        """Remove the temporary file."""
        self._temporary.unlink(missing_ok=True)

    def write(self, data: object) -> None:
        """Write ``data`` as JSON and rename the temporary file to result.json."""
        if os.getpid() != self._pid:  # a child process: this descriptor is not its own
            write_json(self._path, data, durable=True)
            return
        text = json.dumps(data).encode()
        try:
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))
            os.fsync(self._fd)
            self._temporary.replace(self._path)
        except OSError:  # the trial closed every descriptor, or removed the file
            write_json(self._path, data, durable=True)
