"""The host's side: pack what a trial has changed, and deliver it while the trial runs."""

from __future__ import annotations

import contextlib
import stat
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from spearmint.layout import TrialFolder
from spearmint.trial.transport.packing import Interrupted, Part, tree, write_parcel
from spearmint.trial.transport.parcel import Header

FILES_S = 5.0
"""Shortest time between two deliveries of the files of the user's code."""

_STEP_S = 0.2
_LIVE_S = 2.0  # the same for output and reports
_SHARE = 20  # packing and delivering files for a second delays the next files this many seconds
_PAUSE_S = 5.0  # after a delivery that failed
_NOT_RETURNED = {"trial.json", "function.pickle", "lock"}

_State = dict[str, tuple[int, int, int]]
"""Of files by their names: size, time of the last change in ns, and inode."""


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

    Attributes:
        stops: Returns whether to stop packing, which can take long for large files.
        left_out: How often files of the user's code changed while they were packed.
    """

    def __init__(
        self, folder: TrialFolder, output: Path, header: Header, *, knows_files: bool = True
    ) -> None:
        self._folder, self._output, self._header = folder, output, header
        self._small: _State = {}
        self._files: _State = _state_of(tree(folder.files)) if knows_files else {}
        self._packed: tuple[_State, _State, Header] = ({}, self._files, header)
        self._largest: dict[str, int] = {}
        self.stops: Callable[[], bool] = bool
        self.left_out = 0

    def pack(self, directory: Path, *, with_files: bool, everything: bool = False) -> Path | None:
        """Write a parcel with what has changed; None if nothing has.

        Files of the user's code that cannot be read, or change during that, are left out, all of
        them. A file that only becomes longer, such as a log, is packed as far as it is.

        Args:
            directory: Where to write it.
            with_files: Whether to send the files of the user's code if they have changed.
            everything: Whether to send them and all others even if nothing has changed.

        Raises:
            Interrupted: ``stops`` returned true.
            OSError: A file cannot be read or written; with ``everything``, also one of the user's.
        """
        if everything:
            return self._pack(directory, tree(self._folder.files))
        if with_files:
            files = tree(self._folder.files)
            state = _state_of(files)
            if state != self._files:
                try:
                    path = self._pack(directory, files)
                    if self._is_whole(state):
                        return path
                    path.unlink()
                except Interrupted:
                    raise
                except (OSError, ValueError):  # a file was deleted, for example
                    pass
                self.left_out += 1
        return self._pack_small(directory)

    def _pack_small(self, directory: Path) -> Path | None:
        """Write a parcel without the files of the user's code; None if nothing has changed."""
        has_output = self._output.stat().st_size != self._header.offset
        if not has_output and _state_of(self._returned()) == self._small:
            return None
        return self._pack(directory, None)

    def _pack(self, directory: Path, files: dict[str, Path] | None) -> Path:
        """Write a parcel, with the files of the user's code unless they are None."""
        sources, last = self._returned(), self._header
        small, size = _state_of(sources), self._output.stat().st_size
        kept = self._files if files is None else _state_of(files)
        header = replace(last, number=last.number + 1, has_files=files is not None)
        path = directory / header.name
        output = Part(self._output, last.offset, size) if size > last.offset else None
        write_parcel(path, header, sources | (files or {}), output, stops=self.stops)
        self._packed = (small, kept, replace(header, offset=size, has_files=False))
        return path

    def _is_whole(self, before: _State) -> bool:
        """Return whether files that were packed since ``before`` are as at one instant.

        A file that has only grown is, if it had grown before as well: a checkpoint that is written
        for the first time, or again from its start, is not.
        """
        now, largest = _state_of(tree(self._folder.files)), self._largest
        self._largest = {
            name: max(size, largest.get(name, 0)) for name, (size, _, _) in before.items()
        }
        if now.keys() != before.keys():
            return False
        return all(
            found == before[name]
            or (
                found[2] == before[name][2]
                and found[0] > before[name][0] >= largest.get(name, sys.maxsize)
            )
            for name, found in now.items()
        )

    def delivered(self) -> None:
        """Leave what the last parcel has out of the next ones."""
        self._small, self._files, self._header = self._packed

    def _returned(self) -> dict[str, Path]:
        return {
            path.name: path
            for path in self._folder.path.iterdir()
            if path.is_file() and path.name not in _NOT_RETURNED and not path.name.startswith(".")
        }


def _state_of(files: dict[str, Path]) -> _State:
    found = {}
    for name, path in files.items():
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            is_folder = stat.S_ISDIR(status.st_mode)  # its time and size follow from its files
            state = (0, 0) if is_folder else (status.st_size, status.st_mtime_ns)
            found[name] = (*state, status.st_ino)
    return found


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
        packer.stops = self._ending.is_set

    def run(self) -> None:
        """Deliver until :meth:`stop`."""
        self._files_due = time.monotonic() + FILES_S
        while not self._ending.wait(_STEP_S):
            if time.monotonic() < self._live_due:
                continue
            try:
                self._deliver()
            except (OSError, ValueError):
                self._live_due = time.monotonic() + _PAUSE_S

    def _deliver(self) -> None:
        began = time.monotonic()
        has_files = began >= self._files_due
        share = _SHARE
        if self._parcel is None:
            was_left_out = self._packer.left_out > 0
            self._parcel = self._packer.pack(self._directory, with_files=has_files)
            if self._packer.left_out and not was_left_out:
                share = 0  # unknown yet whether new files only grow, as logs do: soon it is known
            if has_files:
                self._delay_files(began, share)
        if self._parcel is None or self._ending.is_set():
            return
        # A parcel whose delivery failed is sent again as it was: it may have arrived.
        self._carrier.send(self._parcel, self._parcel.name)
        self._packer.delivered()
        self._parcel.unlink()
        self._parcel = None
        self._live_due = time.monotonic() + _LIVE_S
        if has_files:
            self._delay_files(began, share)

    def _delay_files(self, began: float, share: int) -> None:
        now = time.monotonic()
        self._files_due = now + max(FILES_S, share * (now - began))

    def stop(self) -> None:
        """Stop packing and delivering, also in the middle of a parcel."""
        self._ending.set()
        while self.is_alive():
            self._carrier.close()  # the connection may be opened after the first call
            self.join(_STEP_S)
