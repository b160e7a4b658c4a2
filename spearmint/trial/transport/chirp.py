"""Read and write files on the submit side of an HTCondor job, by its starter's proxy ("chirp").

A job with ``want_io_proxy`` finds the address of the proxy in a file. Paths are relative to the
job's initial directory on the submit side. Source: HTCondor manual, "Chirp"; the commands are
lines, and each answer is a number, negative for an error.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import BinaryIO, Protocol, cast

CONFIGURATION = "_CONDOR_CHIRP_CONFIG"
"""Environment variable with the file that names the proxy."""

_TIMEOUT_S = 60.0
_BLOCK = 1 << 20
_MODE = 0o600


class Writes(Protocol):
    """A file that is open for writing."""

    def write(self, data: bytes, /) -> object:
        """Write all of ``data``."""
        ...


class Chirp:
    """Carries files to the submit side; each call opens a connection, so none is ever stale."""

    def __init__(self, configuration: Path) -> None:
        self._configuration = configuration
        self._socket: socket.socket | None = None

    @classmethod
    def of_job(cls) -> Chirp | None:
        """Return the proxy of this job; None if it has none."""
        path = os.environ.get(CONFIGURATION, "")
        return cls(Path(path)) if path and Path(path).exists() else None

    def send(self, path: Path, name: str) -> None:
        """Write a file under ``name`` by rename. Raises OSError; it may be there all the same."""
        with self._connect() as link, path.open("rb") as file:
            number = _open(link, f".{name}.part", "wct")
            while block := file.read(_BLOCK):
                written = _ask(link, f"write {number} {len(block)}", block)
                if written != len(block):
                    raise OSError(f"the proxy wrote {written} of {len(block)} bytes")
            _ask(link, f"close {number}")
            _ask(link, f"rename {_word(f'.{name}.part')} {_word(name)}")

    def fetch(self, name: str, target: Writes) -> None:
        """Write the content of a file of the submit side to an open file. Raises OSError."""
        with self._connect() as link:
            number = _open(link, name, "r")
            while length := _ask(link, f"read {number} {_BLOCK}"):
                block = link.read(length)
                if len(block) != length:
                    raise OSError(f"the proxy sent {len(block)} of {length} bytes")
                target.write(block)
            _ask(link, f"close {number}")

    def touch(self, path: str) -> None:
        """Create an empty file. Raises OSError."""
        with self._connect() as link:
            _ask(link, f"close {_open(link, path, 'wct')}")

    def close(self) -> None:
        """Make a call of another thread fail."""
        if (found := self._socket) is not None:
            try:
                found.shutdown(socket.SHUT_RDWR)
            except OSError:
                return

    def _connect(self) -> BinaryIO:
        words = self._configuration.read_text().split()
        if len(words) != 3:
            raise OSError(f"{self._configuration} does not name a proxy")
        host, port, cookie = words
        self._socket = made = socket.create_connection((host, int(port)), _TIMEOUT_S)
        link = cast(BinaryIO, made.makefile("rwb"))
        made.close()  # the connection ends with the file
        try:
            _ask(link, f"cookie {cookie}")
        except OSError:
            link.close()
            raise
        return link


def _open(link: BinaryIO, path: str, flags: str) -> int:
    number = _ask(link, f"open {_word(path)} {flags} {_MODE}")
    link.readline()  # the status of the file
    return number


def _ask(link: BinaryIO, line: str, data: bytes = b"") -> int:
    link.write(os.fsencode(line) + b"\n" + data)
    link.flush()
    answer = link.readline()
    try:
        number = int(answer)
    except ValueError:
        raise OSError(f"the proxy answered {answer[:80]!r} to {line.partition(' ')[0]}") from None
    if number < 0:
        raise OSError(f"the proxy refused {line.partition(' ')[0]}: {number}")
    return number


def _word(text: str) -> str:
    return re.sub(r"([\\\s])", r"\\\1", text)
