"""The controller's side of one start of a job on a host that shares no files."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.grants import Digests, Packed, Packing, make_grant, open_box
from spearmint.drivers.celery.post.names import Names, Side
from spearmint.drivers.celery.post.pieces import (
    MOST_BYTES,
    SMALL,
    Incoming,
    Outgoing,
    is_digest,
    want_of,
)
from spearmint.drivers.celery.post.store import Store
from spearmint.drivers.celery.records import Records
from spearmint.errors import SpearmintError
from spearmint.layout import Layout
from spearmint.trial.transport.mailroom import OUTBOX, START
from spearmint.trial.transport.parcel import END

_log = logging.getLogger(__name__)
_NAME_BYTES = 200
_LEASE_BYTES = 80
_BUSY_S = 5.0  # a busy controller says that it lives this often


class Guest:
    """Answers what a host says about a job that it has claimed.

    Args:
        start: Name of the start.
        job: Id of the job.
        records: The jobs of the experiment.
        experiment: Its directory.
        store, names: Where the pieces of files are.
        digests: Known digests of files.
        packing: Packs the files of all guests.
        may_move: Returns whether a large file of this start may move now.
    """

    def __init__(
        self,
        start: str,
        job: str,
        *,
        records: Records,
        experiment: Path,
        store: Store,
        names: Names,
        digests: Digests,
        packing: Packing,
        may_move: Callable[[str], bool],
    ) -> None:
        self._start, self._id, self._experiment = start, job, experiment
        self._records, self._folder = records, records.folder(job)
        self._store, self._names = store, names
        self._digests, self._may_move = digests, may_move
        self._packing = packing
        self._packed: Future[Packed] | None = None
        self._grant: dict[str, Any] = {}
        self._files: dict[str, Path] = {}
        self._outgoing: Outgoing | None = None
        self._incoming: Incoming | None = None
        self._part: BufferedIOBase | None = None
        self._name = self._got = self._lease = ""
        self.wakes = self.is_moving = self._is_busy = False

    def answer(self, said: dict[str, Any]) -> dict[str, Any]:
        """Do what is due, and return what to say. Raises OSError.

        ``wakes`` is set if the host must look, though what is said does not change; ``is_moving``
        while a large file is on its way.
        """
        self.wakes = self.is_moving = self._is_busy = False
        if not self._folder.exists() or (self._folder / "end").exists():
            self.close()
            return {"over": True}
        self._renew(str(said.get("lease", ""))[:_LEASE_BYTES])
        say: dict[str, Any] = {"cancel": self._is_cancelled()}
        end = said.get("end")
        try:
            if not end:  # a job that has ended needs no files
                self._prepare()
        except SpearmintError as error:
            return self._finish({"failure": str(error), "ended": time.time()})
        if not said.get("ready"):
            say["grant"] = self._grant
            self._is_busy = not self._grant
        self._serve(want_of(said.get("need")))
        if self._is_busy:  # the host waits as long as this changes
            say["busy"] = int(time.monotonic() / _BUSY_S)
        is_got = self._receive(said.get("offer"), say)
        if isinstance(end, dict) and is_got:
            return self._finish(end)
        return say

    def _is_cancelled(self) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return (self._folder / "cancel").stat().st_size > 0
        return False

    def _renew(self, lease: str) -> None:
        if lease != self._lease:
            write_lease(self._folder, lease)
            self._lease = lease

    def _prepare(self) -> None:
        """Start to pack the files, or take what was packed."""
        if self._grant:
            return
        if self._packed is None:
            signal = {self._names.signal: self._start}
            self._packed = self._packing.start(self._pack, lambda: self._store.notify(signal))
        if self._packed.done():
            packed, self._packed = self._packed, None
            self._grant, self._files = packed.result()

    def _pack(self) -> Packed:
        """Pack the files, or find those that an earlier controller packed."""
        job, box = self._records.job(self._id), self._box()
        if job is None:
            return {}, {}
        if box is None:
            box = open_box(self._experiment, job, self._id.partition(".")[0])
            part = self._folder / ".box"
            part.write_text(box.name)
            part.rename(self._folder / "box")
        return make_grant(job, box, self._digests)

    def _box(self) -> Path | None:
        with contextlib.suppress(FileNotFoundError):
            name = (self._folder / "box").read_text()
            path = Layout(self._experiment).transfer / name
            return path if path.is_dir() else None
        return None

    def _key(self, side: Side) -> Callable[[str, int], str]:
        return lambda digest, number: self._names.piece(self._start, side, digest, number)

    def _serve(self, need: tuple[str, int, int] | None) -> None:
        if need is None or need[0] not in self._files:
            return
        if not self._may_move(self._start):
            self._is_busy = True
            return
        if self._outgoing is None or self._outgoing.digest != need[0]:
            path = self._files[need[0]]
            self._outgoing = Outgoing(self._store, self._key("controller"), path, need[0])
        self.is_moving = True
        self.wakes |= self._outgoing.serve(need)

    def _receive(self, offer: Any, say: dict[str, Any]) -> bool:
        """Take what a host offers; return whether there is nothing more of it."""
        if offer is None:
            return True
        name, digest, size = _checked(offer)
        if name and name == self._got:
            say["got"] = name
            return True
        if not name:
            return False
        if self._incoming is None or (self._name, self._incoming.digest) != (name, digest):
            self._open(name, digest, size)
        if size > SMALL:
            if not self._may_move(self._start):
                return False
            self.is_moving = True
        try:
            self._take()
        except OSError:
            self.close()  # from its start, when there is space
            raise
        if self._got == name:
            self.is_moving = False
            say["got"] = name
            return True
        if self._incoming is not None:
            say["want"] = list(self._incoming.want)
        return False

    def _open(self, name: str, digest: str, size: int) -> None:
        self.close()
        box = self._box()
        if box is None:
            raise FileNotFoundError(f"the mailbox of job {self._id} is missing")
        self._name = name
        path = (box / OUTBOX if name == START else box) / f".{name}.{self._start[-16:]}.part"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self._part = path.open("w+b")
        self._incoming = Incoming(self._store, self._key("host"), digest, size, self._part)

    def _take(self) -> None:
        incoming, part = self._incoming, self._part
        if incoming is None or part is None:
            return
        while incoming.take() and not incoming.is_complete:
            continue
        if incoming.is_complete:
            part.flush()
            os.fsync(part.fileno())
            path = Path(str(part.name))  # type: ignore[attr-defined]
            path.rename(path.with_name(self._name))
            self._got = self._name
            self.close()

    def _finish(self, end: dict[str, Any]) -> dict[str, Any]:
        """Write how the job ended; the controller then looks for its result."""
        self.close()
        with contextlib.suppress(FileNotFoundError):
            part = self._folder / ".end.part"
            part.write_text(json.dumps(end))
            part.rename(self._folder / "end")
        done = (self._records.job(self._id) or {}).get("remote", {}).get("done")
        if done:
            Path(done).touch()
        return {"over": True}

    def close(self) -> None:
        """Close a file that did not arrive as a whole."""
        part, self._part, self._incoming = self._part, None, None
        if part is not None:
            with contextlib.suppress(OSError):  # a full disk: it cannot write the last bytes
                part.close()
            with contextlib.suppress(OSError):
                Path(str(part.name)).unlink(missing_ok=True)  # type: ignore[attr-defined]


def write_lease(folder: Path, text: str) -> None:
    """Note a sign of life where :class:`~spearmint.drivers.celery.lost.LostJobs` sees it."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(folder / "lease", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, f"{text:100}\n".encode(), 0)  # in place: also on a full disk
        finally:
            os.close(fd)


def _checked(offer: Any) -> tuple[str, str, int]:
    """Return name, digest and size; an empty name if they are not those of a parcel."""
    match offer:
        case {"name": str(name), "digest": digest, "size": int(size)}:
            is_parcel = name.endswith(END) or name == START
            is_plain = "/" not in name and "\0" not in name and not name.startswith(".")
            is_fit = len(name.encode(errors="replace")) <= _NAME_BYTES and 0 <= size <= MOST_BYTES
            if is_parcel and is_plain and is_fit and is_digest(digest):
                return name, str(digest), size
    return "", "", 0
