"""The host's side: pack what a trial has changed, and deliver it while the trial runs."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from spearmint.layout import TrialFolder
from spearmint.trial.transport.parcel import Header, Part, tree, write_parcel

FILES_S = 5.0
"""Shortest time between two deliveries of the files of the user's code."""

_STEP_S = 0.2
_LIVE_S = 2.0  # the same for output and reports
_SHARE = 20  # a delivery that takes a second is followed by a pause of this many seconds
_PAUSE_S = 5.0  # after a delivery that failed
_NOT_RETURNED = {"trial.json", "function.pickle", "lock"}

_State = tuple[tuple[str, int, int], ...]


class Carrier(Protocol):
    """Carries files to the submit side of a job."""

    def send(self, path: Path, name: str) -> None:
        """Write a file under ``name`` by rename. Raises OSError; it may be there all the same."""
        ...

    def touch(self, path: str) -> None:
        """Create an empty file. Raises OSError."""
        ...

    def close(self) -> None:
        """Make a call of another thread fail."""
        ...


class Packer:
    """Packs the changes of one run of a trial since the last delivered parcel.

    Args:
        folder: Folder of the trial on this host.
        output: File with the output of this run.
        header: Key, run and start of the parcels.
        knows_files: Whether the submit side has the files of the user's code as they are now.
    """

    def __init__(
        self, folder: TrialFolder, output: Path, header: Header, *, knows_files: bool = True
    ) -> None:
        self._folder, self._output, self._header = folder, output, header
        self._small: _State = ()
        self._files: _State = _state_of(tree(folder.files)) if knows_files else ()
        self._packed: tuple[_State, _State, Header] = ((), self._files, header)

    def pack(self, directory: Path, *, with_files: bool, everything: bool = False) -> Path | None:
        """Write a parcel with what has changed; None if nothing has.

        Args:
            directory: Where to write it.
            with_files: Whether to send the files of the user's code if they have changed.
            everything: Whether to send them and all others even if nothing has changed.

        Raises:
            OSError: A file cannot be read or written, or changed during that.
        """
        sources = {path.name: path for path in self._returned()}
        files = tree(self._folder.files)
        small, state, size = _state_of(sources), _state_of(files), self._output.stat().st_size
        has_files = everything or (with_files and state != self._files)
        last = self._header
        if not has_files and small == self._small and size == last.offset:
            return None
        header = replace(last, number=last.number + 1, has_files=has_files)
        path = directory / header.name
        output = Part(self._output, last.offset, size) if size > last.offset else None
        write_parcel(path, header, sources | (files if has_files else {}), output)
        if has_files and not everything and _state_of(tree(self._folder.files)) != state:
            path.unlink()
            raise OSError("the files of the trial changed while they were packed")
        kept = state if has_files else self._files
        self._packed = (small, kept, replace(header, offset=size, has_files=False))
        return path

    def delivered(self) -> None:
        """Leave what the last parcel has out of the next ones."""
        self._small, self._files, self._header = self._packed

    def _returned(self) -> list[Path]:
        return [
            path
            for path in self._folder.path.iterdir()
            if path.is_file() and path.name not in _NOT_RETURNED and not path.name.startswith(".")
        ]


def _state_of(files: dict[str, Path]) -> _State:
    found = []
    for name, path in sorted(files.items()):
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            found.append((name, status.st_size, status.st_mtime_ns))
    return tuple(found)


class Sender(threading.Thread):
    """Delivers parcels while the trial runs. Errors only delay: the last parcel has everything.

    Args:
        carrier: How to deliver.
        packer: What to deliver.
        directory: Where to keep a parcel until it is delivered.
    """

    def __init__(self, carrier: Carrier, packer: Packer, directory: Path) -> None:
        super().__init__(daemon=True)
        self._carrier, self._packer, self._directory = carrier, packer, directory
        self._ending = threading.Event()
        self._parcel: Path | None = None
        self._live_due = self._files_due = 0.0

    def run(self) -> None:
        """Deliver until :meth:`stop`."""
        self._files_due = time.monotonic() + FILES_S
        while not self._ending.wait(_STEP_S):
            if time.monotonic() < self._live_due:
                continue
            try:
                self._deliver()
            except OSError:
                self._live_due = time.monotonic() + _PAUSE_S

    def _deliver(self) -> None:
        began = time.monotonic()
        has_files = began >= self._files_due
        if self._parcel is None:
            self._parcel = self._packer.pack(self._directory, with_files=has_files)
        if self._parcel is None:
            return
        # A parcel whose delivery failed is sent again as it was: it may have arrived.
        self._carrier.send(self._parcel, self._parcel.name)
        self._packer.delivered()
        self._parcel.unlink()
        self._parcel = None
        now = time.monotonic()
        self._live_due = now + max(_LIVE_S, _SHARE * (now - began))
        if has_files:
            self._files_due = now + max(FILES_S, _SHARE * (now - began))

    def stop(self) -> None:
        """Stop delivering, also in the middle of a parcel."""
        self._ending.set()
        self._carrier.close()
        self.join()
