"""The controller's side: answers the hosts that run jobs of one experiment, in a thread."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.grants import Digests, Packing
from spearmint.drivers.celery.post.guest import Guest, write_lease
from spearmint.drivers.celery.post.names import Names, job_of
from spearmint.drivers.celery.post.seal import opened, seal
from spearmint.drivers.celery.post.store import Store, StoreDown
from spearmint.drivers.celery.records import Records
from spearmint.layout import read_json

_log = logging.getLogger(__name__)
_LOOK_S = 1.0  # between two looks at all hosts
_AGAIN_S = 2.0  # Redis may have lost what was said
_DOWN_S = 1.0
_FORGET_S = 600.0
_MOVING = 8  # starts whose large files move at the same time: each has up to 4 MiB in Redis
_STALLED_S = 10.0


class Postman(threading.Thread):
    """Answers hosts until ``stops`` is set. Only one of an experiment's works at a time.

    Args:
        store: Redis.
        key: Key of signatures.
        experiment: Directory of the experiment, whose search has a name.
        stops: Ends the thread.

    Attributes:
        trouble: Why no host is answered at present; empty if all are.
    """

    def __init__(self, store: Store, key: str, experiment: Path, stops: threading.Event) -> None:
        super().__init__(daemon=True)
        self._store, self._key, self._experiment = store, key, experiment
        self._records, self._stops = Records(experiment), stops
        self._names = Names(self._records.search())
        self._guests: dict[str, Guest] = {}
        self._said: dict[str, tuple[dict[str, Any], float]] = {}
        self._gone: dict[str, float] = {}
        self._moving: dict[str, float] = {}
        self._digests, self._packing, self._outages = Digests(), Packing(), 0
        self._looked, self.trouble = float("-inf"), ""

    def run(self) -> None:
        """Work until ``stops`` is set."""
        while not self._stops.is_set():
            with self._locked() as is_mine:
                while is_mine and not self._stops.is_set():
                    self._turn()
            self._stops.wait(_DOWN_S)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        """Lock the experiment against another thread, or against that of another process."""
        fd = -1
        try:
            path = self._records.base / "post.lock"
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except OSError:
            yield False
        finally:
            if fd >= 0:
                os.close(fd)

    def _turn(self) -> None:
        try:
            self._answer_all()
            self.trouble = ""
        except StoreDown as error:
            self.trouble = str(error)
            self._outages += 1
            with contextlib.suppress(OSError):
                for job in self._known().values():
                    # No host can give a sign of life: its time begins when Redis is back.
                    write_lease(self._records.folder(job), f"without Redis {self._outages}")
            self._stops.wait(_DOWN_S)
        except Exception as error:  # noqa: BLE001 - this thread must not end
            self.trouble = f"{type(error).__name__}: {error}"
            _log.warning("cannot answer the hosts of trials: %s", self.trouble)
            self._stops.wait(_DOWN_S)

    def _answer_all(self) -> None:
        heard = self._store.wait(self._names.signal, _LOOK_S / 2)
        now, side = time.monotonic(), self._names.said_by("host")
        if now - self._looked > _LOOK_S:
            self._looked = now
            found = self._store.fields(side)
            self._keep(found)
        else:
            found = self._store.some(side, [start for start in heard if job_of(start)])
        says: dict[str, str] = {}
        signals: dict[str, str] = {}
        for start, sealed in found.items():
            said = opened(self._key, self._names.context("host", start), sealed)
            if said is not None and job_of(start) is not None:
                self._answer(start, said, says, signals)
        self._store.write(self._names.said_by("controller"), says)
        self._store.notify(signals)

    def _keep(self, found: Mapping[str, bytes]) -> None:
        """Forget starts that no host names any more, and those that are over for a while."""
        known = self._known()
        for start in self._guests.keys() - known.keys():
            self._guests[start].close()
        self._guests = {start: guest for start, guest in self._guests.items() if start in known}
        self._said = {start: said for start, said in self._said.items() if start in found}
        now = time.monotonic()
        old = [start for start, since in self._gone.items() if now - since > _FORGET_S]
        self._gone = {
            start: since
            for start, since in self._gone.items()
            if start in found and start not in old
        }
        for hash in self._names.both:
            self._store.forget(hash, old)

    def _known(self) -> dict[str, str]:
        """Return the jobs that have not ended by their starts."""
        found = {record.id: (record.claim or {}).get("start") for record in self._records.all()}
        return {str(start): id for id, start in found.items() if start}

    def _answer(
        self, start: str, said: dict[str, Any], says: dict[str, str], signals: dict[str, str]
    ) -> None:
        try:
            guest = self._guests.get(start) or self._admit(start, said)
            say = {"over": True} if guest is None else guest.answer(said)
        except StoreDown:
            raise
        except OSError as error:  # a full disk, for example: the others do not wait
            _log.warning("job %s: %s", start, error)
            return
        wakes = guest is not None and guest.wakes
        if guest is None or not guest.is_moving:
            self._moving.pop(start, None)
        if say.get("over"):
            self._guests.pop(start, None)
            self._gone.setdefault(start, time.monotonic())
        last, at = self._said.get(start, ({}, 0.0))
        if say != last or time.monotonic() - at > _AGAIN_S:
            context = self._names.context("controller", start)
            says[start] = seal(self._key, context, say)
            self._said[start] = (say, time.monotonic())
        if say != last or wakes:
            signals[self._names.signal_of(start)] = ""

    def _admit(self, start: str, said: dict[str, Any]) -> Guest | None:
        """Claim a waiting job for a start; None if the job is over, or of another start."""
        id = job_of(start) or ""
        folder, who = self._records.folder(id), said.get("who")
        if not folder.exists() or not isinstance(who, dict):
            return None
        claim = {name: who.get(name) for name in ("host", "pid", "gpu", "since")}
        is_mine = self._records.claim(id, {**claim, "start": start})
        if not is_mine and (read_json(folder / "claim") or {}).get("start") != start:
            return None
        guest = Guest(
            start,
            id,
            records=self._records,
            experiment=self._experiment,
            store=self._store,
            names=self._names,
            digests=self._digests,
            packing=self._packing,
            may_move=self._may_move,
        )
        self._guests[start] = guest
        return guest

    def _may_move(self, start: str) -> bool:
        """Return whether a large file may move now; the memory of Redis limits how many do."""
        now = time.monotonic()
        self._moving = {s: at for s, at in self._moving.items() if now - at < _STALLED_S}
        if start not in self._moving and len(self._moving) >= _MOVING:
            return False
        self._moving[start] = now
        return True
