"""The submit side: one mailbox for each job, with what goes to its host and what came back."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import secrets
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from spearmint.errors import DriverUnreachable
from spearmint.layout import TrialFolder, read_json, write_json
from spearmint.trial.transport.packing import tree, write_parcel
from spearmint.trial.transport.parcel import END, BadParcel, Header, Parcel, open_parcel
from spearmint.trial.transport.restore import restore

SPEC, STATE = "spec.zip", "state.zip"
"""Names of the parcels to the host: what to run, and the files of the trial so far."""
OUTBOX = "outbox"
"""Directory of the parcels that the queue brings back when a job ends."""
START = "start.txt"
"""File in the outbox with the output of a job that ended before its trial started."""

_ADDRESS, _SEEN = "address.json", "seen.json"
_SENT = ("trial.json", "function.pickle")
_OWN = {*_SENT, "lock", "files"}
_BAD = ".bad"
# Errors that a name or a position in a parcel causes; others, such as a full disk, may pass.
_FAULTS = {
    *(errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.EFBIG, errno.EOVERFLOW),
    *(errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP),
}
_log = logging.getLogger(__name__)
_YOUNG_S = 60.0  # a job may be listed this long after its submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where the contents of a mailbox belong.

    Attributes:
        folder: Folder of the trial.
        output: File to which its output is appended.
        done: File that announces on the submit side that the job is about to end.
        key: Key of the trial's attempt.
    """

    folder: str
    output: str
    done: str
    key: str


@dataclass(slots=True)
class _Seen:
    """What a mailbox has received: its newest parcel, and where each run's output begins.

    Each run has its own start; numbers of runs are equal if a host cannot read its job's ad.
    """

    run: int = 0
    number: int = 0
    start: str = ""
    starts: list[str] = field(default_factory=list)
    bases: dict[str, int] = field(default_factory=dict)


class Mailroom:
    """The mailboxes of one experiment.

    A mailbox is a directory ``TOKEN.RANDOM``. A new submission of a trial gets a new one, so that
    nothing of an earlier job can arrive there.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open_box(self, token: str, address: Address, inputs: Mapping[str, Path]) -> Path:
        """Create the mailbox of a job, delete earlier ones of its trial, and return it.

        Args:
            token: Token of the trial.
            address: Where its contents belong.
            inputs: Further files for the host, by name. They are linked, so they must not change.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in self._directory.glob(f"{token}.*"):
            shutil.rmtree(old, ignore_errors=True)
        box = self._directory / f"{token}.{secrets.token_hex(4)}"
        box.mkdir(mode=0o700)
        write_json(box / _ADDRESS, asdict(address))
        folder = TrialFolder(Path(address.folder))
        for name in (SPEC, STATE):
            write_parcel(box / name, *_outgoing(name, folder, address.key))
        for name, path in inputs.items():
            os.link(path, box / name)
        return box

    def receive(self, listed: Collection[str] | None) -> None:
        """Store what has arrived, and delete the mailboxes of jobs that have ended.

        Args:
            listed: Tokens of the trials whose jobs have not ended; None to delete nothing.

        Raises:
            DriverUnreachable: Something cannot be stored now; nothing of it is lost.
        """
        try:
            self._receive(listed)
        except OSError as error:
            raise DriverUnreachable(
                f"cannot store what trials have sent: {error}",
                f"Nothing is lost. Check the space and the permissions of {self._directory}.",
            ) from error

    def _receive(self, listed: Collection[str] | None) -> None:
        with contextlib.suppress(FileNotFoundError):
            for name in sorted(os.listdir(self._directory)):  # noqa: PTH208 - every few seconds
                token, dot, _ = name.partition(".")
                is_listed = listed is None or token in listed
                box = self._directory / name
                if not dot or (is_listed and not _has_arrivals(box)) or not box.is_dir():
                    continue
                address = read_json(box / _ADDRESS)
                if address is not None:
                    _Mailbox(box, Address(**address)).receive()
                if not is_listed and _is_over(box, address):
                    shutil.rmtree(box, ignore_errors=True)


def _has_arrivals(box: Path) -> bool:
    """Return whether there is anything to store; listing a network directory refreshes it."""
    try:
        names = os.listdir(box)  # noqa: PTH208 - of each running trial, every few seconds
        names += os.listdir(box / OUTBOX) if OUTBOX in names else []  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return False
    return any(name.endswith(END) or name == START for name in names)


def _is_over(box: Path, address: Mapping[str, str] | None) -> bool:
    """Return whether nothing can arrive any more for a job that is not listed."""
    is_done = address is not None and TrialFolder(Path(address["folder"])).result.exists()
    return is_done or time.time() - box.stat().st_mtime > _YOUNG_S


def _outgoing(name: str, folder: TrialFolder, key: str) -> tuple[Header, dict[str, Path]]:
    """Return what a new mailbox sends."""
    if name == SPEC:
        files = {name: folder.path / name for name in _SENT if (folder.path / name).exists()}
        return Header(key=key), files
    files = tree(folder.files)
    if folder.reports.exists():
        files[folder.reports.name] = folder.reports
    return Header(key=key, has_files=True), files


def _turn(path: Path, current: str) -> tuple[str, bool, str, str]:
    """Return by what parcels are sorted: run, the ``current`` start first, start and number."""
    run, _, rest = path.name.partition("-")
    number, _, start = rest.removesuffix(END).partition("-")
    return run, start != current, start, number


class _Mailbox:
    """Stores each parcel of a job, in their order; each step can be repeated after a kill."""

    def __init__(self, path: Path, address: Address) -> None:
        self._path, self._address = path, address
        self._folder, self._output = TrialFolder(Path(address.folder)), Path(address.output)

    def receive(self) -> None:
        arrived = [*self._path.glob(f"*{END}"), *(self._path / OUTBOX).glob(f"*{END}")]
        current = self._seen().start
        for path in sorted(arrived, key=lambda path: _turn(path, current)):
            try:
                self._receive(path)
            except OSError as error:
                if error.errno is not None and error.errno not in _FAULTS:
                    raise
                path.replace(path.with_name(path.name + _BAD))  # the others are not delayed
                _log.warning("cannot store %s of %s: %s", path.name, self._folder.path, error)
        self._receive_start()

    def _receive(self, path: Path) -> None:
        with open_parcel(path) as parcel:
            if parcel is None:
                return  # it is still being written, or its sender was killed
            header = parcel.header
            if not _OWN.isdisjoint(parcel.names):
                raise BadParcel("a parcel has files of the submit side")
            is_state = header.key == self._address.key and self._store(parcel)
        if is_state and header.has_files:
            path.replace(self._path / STATE)  # a rerun on another host starts with it
        else:
            path.unlink(missing_ok=True)

    def _store(self, parcel: Parcel) -> bool:
        """Store a parcel; return whether it is the newest."""
        seen, header = self._seen(), parcel.header
        is_same = header.start == seen.start
        is_over = not is_same and (header.run < seen.run or header.start in seen.starts)
        if parcel.has_output and not is_over:
            self._store_output(parcel, seen)
        if is_over or (is_same and header.order < (seen.run, seen.number)):
            self._store_result(parcel)
            return False
        restore(parcel, self._folder)
        seen.run, seen.number = header.order
        if not is_same:
            seen.start = header.start
            seen.starts.append(header.start)
        write_json(self._path / _SEEN, asdict(seen))
        return True

    def _store_result(self, parcel: Parcel) -> None:
        """Keep a result that arrives late; it is of this attempt, whichever run has it."""
        result = self._folder.result
        if result.name in parcel.names and not result.exists():
            parcel.extract(result.name, result)

    def _store_output(self, parcel: Parcel, seen: _Seen) -> None:
        """Write output where it belongs, so that a second delivery changes nothing."""
        start = parcel.header.start
        with self._output.open("ab") as file:
            end = file.tell()
        if start not in seen.bases:
            seen.bases[start] = end
            write_json(self._path / _SEEN, asdict(seen), durable=True)
        with self._output.open("r+b") as file:
            file.seek(seen.bases[start] + parcel.header.offset)
            parcel.copy_output(file)

    def _seen(self) -> _Seen:
        found: dict[str, Any] = read_json(self._path / _SEEN) or {}
        return _Seen(**found)

    def _receive_start(self) -> None:
        """Append what a job printed that ended before its trial started."""
        text = self._path / OUTBOX / START
        with contextlib.suppress(FileNotFoundError):
            content = text.read_bytes()
            with self._output.open("ab") as file:
                file.write(content)
            text.unlink()
