"""Find secrets in process lists and files while commands run."""

from __future__ import annotations

import base64
import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

_LOOK_S = 0.03


class Watch:
    """Records command line and environment of every new process; a context manager.

    Attributes:
        seen: The process of each text that was read.
    """

    def __init__(self) -> None:
        self.seen: dict[bytes, str] = {}
        self._before = set(_processes())
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _poll(self) -> None:
        while not self._over.wait(_LOOK_S):
            for process in _processes():
                if process in self._before:
                    continue
                for name in ("cmdline", "environ"):
                    with contextlib.suppress(OSError):
                        text = (process / name).read_bytes()
                        self.seen.setdefault(text, f"{name} of process {process.name}")

    def shows(self, secrets: Iterable[bytes]) -> list[str]:
        """Return the places in which a secret was seen."""
        return [where for text, where in self.seen.items() if any(each in text for each in secrets)]


def _processes() -> Iterator[Path]:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            yield path


def forms(secret: str) -> list[bytes]:
    """Return the possible forms of a secret: each of its long lines, plain and in base64."""
    found = []
    for line in secret.splitlines():
        if len(line) < 16 or line.startswith("-----"):
            continue
        found.append(line.encode())
        for shift in range(3):  # base64 depends on the offset in a longer text
            padded = base64.b64encode(b" " * shift + line.encode())
            found.append(padded[4 : len(padded) // 4 * 4 - 4])
    assert found, "no line is long enough to search for"
    return found


def files_with(secrets: Iterable[bytes], roots: Iterable[Path]) -> list[Path]:
    """Return the files below ``roots`` that contain a secret."""
    found = []
    for root in roots:
        for path in [root] if root.is_file() else root.rglob("*"):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink():
                    text = path.read_bytes()
                    found += [path] if any(each in text for each in secrets) else []
    return found
