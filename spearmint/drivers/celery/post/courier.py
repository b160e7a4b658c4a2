"""The host's side of one start of a job: exchanges messages and files with its controller."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping
from io import BufferedIOBase
from typing import Any

from spearmint.drivers.celery.post.names import Names
from spearmint.drivers.celery.post.pieces import (
    SMALL,
    Incoming,
    Outgoing,
    Want,
    digest_of,
    want_of,
)
from spearmint.drivers.celery.post.place import Place
from spearmint.drivers.celery.post.seal import opened, seal
from spearmint.drivers.celery.post.store import Store, StoreDown

log = logging.getLogger("spearmint.worker")

_SAY_S = 1.0  # the lease is renewed this often
_WAIT_S = 0.3
_DOWN_S = 1.0  # pause while Redis does not answer


class Over(Exception):
    """The controller does not want this start, or does not answer."""


class Courier(threading.Thread):
    """Says what happens here, and does what the controller says, until that says that it is over.

    Args:
        store: Redis.
        key: Key of signatures.
        names: The names of the search.
        place: Directory of the start.
        who: The worker: ``host``, ``pid``, ``gpu`` and ``since``.
    """

    def __init__(
        self, store: Store, key: str, names: Names, place: Place, who: Mapping[str, Any]
    ) -> None:
        super().__init__(daemon=True)
        self._store, self._key, self._names = store, key, names
        self._place, self._who, self._start_name = place, who, place.start
        self._say: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._said_at = float("-inf")
        self._count, self._is_ready = 0, False
        self._outgoing: Outgoing | None = None
        self._incoming: Incoming | None = None
        self._wanted: Want | None = None
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self.is_over = False
        self.moved = time.monotonic()

    def run(self) -> None:
        """Exchange until :meth:`end`."""
        said = ""
        while not self._ending.is_set():
            try:
                self._step()
                said = ""
            except OSError as error:
                if str(error) != said:
                    log.warning("job %s: %s", self._start_name, error)
                said = str(error)
                self._ending.wait(_DOWN_S)

    def _step(self) -> None:
        side = self._names.said_by("controller")
        sealed = self._store.some(side, [self._start_name]).get(self._start_name)
        context = self._names.context("controller", self._start_name)
        self._hear(opened(self._key, context, sealed) or {})
        if self.is_over:
            self._ending.wait(_WAIT_S)
            return
        self._offer()
        want, last = want_of(self._say.get("want")), self._wanted
        wakes = self._outgoing is not None and self._outgoing.serve(want)
        self._wanted = want
        moves = self._take()
        self._speak(wakes=wakes)
        if moves or want != last:
            self.moved = time.monotonic()
        if not moves:
            self._store.wait(self._names.signal_of(self._start_name), _WAIT_S)

    def _hear(self, say: dict[str, Any]) -> None:
        if say.get("over"):
            self._place.stop()
        if say.get("cancel") and not self.is_over:
            with contextlib.suppress(FileNotFoundError):
                (self._place.record / "cancel").write_text("cancel\n")
        if self._outgoing is not None and say.get("got") == self._outgoing.path.name:
            self._outgoing.path.unlink(missing_ok=True)
            self._outgoing = None
            self.moved = time.monotonic()
        if say.get("busy") != self._say.get("busy"):
            self.moved = time.monotonic()
        with self._changed:
            self._say, self.is_over = say, self.is_over or bool(say.get("over"))
            self._changed.notify_all()

    def _offer(self) -> None:
        waiting = self._place.parcels() if self._outgoing is None else ()
        if waiting:
            digest = digest_of(waiting[0])
            self._outgoing = Outgoing(self._store, self._key_of("host"), waiting[0], digest)
            if waiting[0].stat().st_size <= SMALL:
                self._outgoing.serve((digest, 0, 1))

    def _key_of(self, side: Any) -> Any:
        return lambda digest, number: self._names.piece(self._start_name, side, digest, number)

    def _take(self) -> bool:
        with self._changed:
            incoming = self._incoming
            if incoming is None:
                return False
            moves = incoming.take()
            if incoming.is_complete:
                self._incoming = None
                self._changed.notify_all()
            return moves

    def _speak(self, *, wakes: bool) -> None:
        """Say what has changed, and wake the controller; renew the lease now and then."""
        content = self._content()
        news = content != {**self._said, "lease": content["lease"]}
        if news or time.monotonic() - self._said_at > _SAY_S:
            self._count += 1
            context = self._names.context("host", self._start_name)
            text = seal(self._key, context, {**content, "lease": self._lease()})
            self._store.write(self._names.said_by("host"), {self._start_name: text})
            self._said, self._said_at = content, time.monotonic()
        if news or wakes:
            self._store.notify({self._names.signal: self._start_name})

    def _content(self) -> dict[str, Any]:
        end, outgoing, incoming = self._place.end(), self._outgoing, self._incoming
        offer = None
        if outgoing is not None:
            size = outgoing.path.stat().st_size
            offer = {"name": outgoing.path.name, "digest": outgoing.digest, "size": size}
        is_last = end is not None and len(self._place.parcels()) <= (outgoing is not None)
        return {
            "who": dict(self._who),
            "lease": "",
            "ready": self._is_ready,
            "offer": offer,
            "need": None if incoming is None else list(incoming.want),
            "end": end if is_last else None,
        }

    def _lease(self) -> str:
        """Return a text that changes while the supervisor lives, and when there is none."""
        if not self._is_ready or self._place.end() is not None:
            return f"sending {self._count}"
        with contextlib.suppress(FileNotFoundError):
            return (self._place.record / "lease").read_text().strip()
        return "starting"

    def wake(self) -> None:
        """Make the thread look immediately."""
        with contextlib.suppress(StoreDown):
            self._store.notify({self._names.signal_of(self._start_name): ""})

    def grant(self, timeout_s: float) -> dict[str, Any]:
        """Wait for the controller's description of the job.

        Raises:
            Over: The controller did not even say that it is busy for ``timeout_s`` seconds, or does
                not want this start.
        """
        self.moved = time.monotonic()
        with self._changed:
            while not self.is_over and not self._say.get("grant"):
                self._changed.wait(1.0)
                if time.monotonic() - self.moved > timeout_s:
                    break
            grant = self._say.get("grant")
            if self.is_over or not isinstance(grant, dict):
                raise Over
            return grant

    def fetch(self, digest: str, size: int, target: BufferedIOBase, timeout_s: float) -> None:
        """Write a file of the grant to an open file. Raises Over; OSError if it does not come."""
        key = self._key_of("controller")
        incoming = Incoming(self._store, key, digest, size, target)
        self._incoming, self.moved = incoming, time.monotonic()
        self.wake()
        with self._changed:
            while not incoming.is_complete and not self.is_over:
                self._changed.wait(1.0)
                os.utime(target.fileno())  # other workers of this host see that this one lives
                if time.monotonic() - self.moved > timeout_s:
                    break
            self._incoming = None
        if self.is_over:
            raise Over
        if not incoming.is_complete:
            raise OSError("the controller does not send the files of the experiment")
        target.flush()

    def note_ready(self) -> None:
        """Say that the grant is not needed any more."""
        self._is_ready = True
        self.wake()

    def deliver(self, patience_s: float) -> bool:
        """Send what the job left; return False if nothing has moved for ``patience_s`` seconds."""
        self.moved = time.monotonic()
        self.wake()
        with self._changed:
            while not self.is_over:
                if time.monotonic() - self.moved > patience_s:
                    return False
                self._changed.wait(0.5)
        return True

    def end(self) -> None:
        """Stop the thread; if the start is over, delete what Redis has of it."""
        self._ending.set()
        self.wake()
        self.join()
        if self.is_over:
            with contextlib.suppress(StoreDown):
                for hash in self._names.both:
                    self._store.forget(hash, [self._start_name])
                self._store.drop([self._names.signal_of(self._start_name)])
