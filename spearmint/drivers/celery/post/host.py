"""Run a job here whose experiment is elsewhere: fetch its files, run it, and send what it wrote."""

from __future__ import annotations

import base64
import hashlib
import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.post.courier import Courier, Over
from spearmint.drivers.celery.post.names import Names, new_start
from spearmint.drivers.celery.post.pieces import MOST_BYTES, is_digest
from spearmint.drivers.celery.post.place import Place, Places
from spearmint.drivers.celery.post.store import Store
from spearmint.layout import write_json
from spearmint.trial.environment import TRANSPORT_DATA, TRANSPORT_SPOOL
from spearmint.trial.transport.cache import Cache
from spearmint.trial.transport.cache_folder import VARIABLE

log = logging.getLogger("spearmint.worker")

GRACE_S = 20.0
"""Seconds from SIGTERM to SIGKILL, in which the trial ends and packs its files."""

_GRANT_S = 20.0  # without an answer: the controller does not run, and sends the message again
_FETCH_S = 300.0
_PATIENCE_S = 10.0  # then the worker takes another trial, and sends the files next to it
_ADOPT_S = 3.0
_LEFT_S = 60.0  # then another directory has its turn
_KEPT_S = 7 * 86400
_MOST_COURIERS = 16

Supervise = Callable[[dict[str, Any], int], None]
"""Runs a task of ``spearmint.trial.supervise``, which inherits the lock of the place."""


class Host:
    """What a worker process does with jobs of experiments that this host does not see.

    Args:
        store: Redis.
        key: Key of signatures.
        root: Root of the worker; raises OSError if its user cannot write it.
        who: ``host``, ``pid`` and ``gpu``.
    """

    def __init__(self, store: Store, key: str, root: Path, who: Mapping[str, Any]) -> None:
        self._store, self._key, self._who = store, key, dict(who)
        self._places = Places(root)
        self._adopted: dict[str, threading.Thread] = {}

    def run(
        self,
        search: str,
        job: str,
        supervise: Supervise,
        on_start: Callable[[str], None],
        inherited: Mapping[str, str],
    ) -> None:
        """Run a job from its grant until its files are sent. Raises OSError.

        Args:
            search: Name of the search.
            job: Id of the job.
            supervise: Runs it.
            on_start: Called with the label of the trial.
            inherited: Environment of the trial, in addition to that of the job.
        """
        place = self._places.new(new_start(job))
        lock = place.create(search)
        courier = self._courier(search, place)
        courier.start()
        try:
            grant = courier.grant(_GRANT_S)
            on_start(str(grant["label"]))
            task = self._prepare(place, courier, grant, inherited)
            courier.note_ready()
            supervise(task, lock)
            note_end(place, self._who, "the process that watched it was killed")
            if not courier.deliver(_PATIENCE_S):
                log.warning("%s: the controller does not answer; its files are kept", job)
        except Over:
            log.info("job %s has ended, or another worker runs it", job)
            place.stop()
            courier.is_over = True
        except (OSError, KeyError, TypeError, ValueError) as error:
            log.warning("cannot run job %s: %s", job, error)
            note_end(place, self._who, f"the worker could not run it: {error}")
            courier.deliver(_PATIENCE_S)
        finally:
            courier.end()
            if courier.is_over:
                place.remove()
            os.close(lock)

    def _courier(self, search: str, place: Place) -> Courier:
        who = {**self._who, "since": time.time()}
        return Courier(self._store, self._key, Names(search), place, who)

    def _prepare(
        self, place: Place, courier: Courier, grant: Mapping[str, Any], inherited: Mapping[str, str]
    ) -> dict[str, Any]:
        """Write the inputs of the job, and return the task of its supervisor."""
        for name, about in grant["files"].items():
            self._bring(place, courier, str(name), about)
        variables = {TRANSPORT_SPOOL: str(place.spool), VARIABLE: str(self._places.cache)}
        if data := grant["data"]:
            variables[TRANSPORT_DATA] = str(data)
        venv = str(grant["venv"])
        python = f"{venv}/bin/python" if venv else sys.executable
        return {
            "argv": ["/bin/bash", "-c", str(grant["script"]), "trial", python, str(place.box)],
            "directory": str(place.box),
            "output": str(place.output),
            "walltime_s": grant["walltime_s"],
            "fence_s": grant["fence_s"],
            "grace_s": GRACE_S,
            "folder": str(place.record),
            "environment": {**inherited, **grant["environment"], **variables},
            "gpus": grant["gpus"],
        }

    def _bring(self, place: Place, courier: Courier, name: str, about: Mapping[str, Any]) -> None:
        """Write one input to the box, or to the cache if it is data."""
        digest, size = about["digest"], int(about["size"])
        is_plain = "/" not in name and name not in ("", ".", "..")
        if not is_plain or not is_digest(digest) or not 0 <= size <= MOST_BYTES:
            raise ValueError(f"the controller sends an invalid file {name!r}")
        target = place.box / name
        if (text := about.get("inline")) is not None:
            content = base64.b64decode(text)
            if hashlib.sha256(content).hexdigest() != digest:
                raise ValueError(f"{name} arrived damaged")
            target.write_bytes(content)
            return

        def fetch(file: BufferedIOBase) -> None:
            courier.fetch(digest, size, file, _FETCH_S)

        if not about["shared"]:
            with target.open("wb") as file:
                fetch(file)
            return
        self._bring_shared(place, f"data-{size}-{digest}.zip", target, fetch)

    def _bring_shared(
        self, place: Place, cached: str, target: Path, fetch: Callable[[BufferedIOBase], None]
    ) -> None:
        folder = os.open(self._places.cache, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            source = Cache(folder).open(cached, fetch)
        finally:
            os.close(folder)
        if source is None:
            raise OSError(f"no space for the files of the experiment in {self._places.cache}")
        with source:
            if target.name != cached:  # the trial takes data from the cache itself
                with target.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)

    def adopt_left(self) -> None:
        """Call :meth:`adopt` for ever; run it in a thread."""
        while True:
            try:
                self.adopt()
            except OSError as error:
                log.warning("cannot look for files of earlier trials: %s", error)
            time.sleep(_ADOPT_S)

    def adopt(self) -> None:
        """Send what killed workers left here, in threads. Raises OSError."""
        self._adopted = {k: thread for k, thread in self._adopted.items() if thread.is_alive()}
        for place in self._places.all():
            if len(self._adopted) >= _MOST_COURIERS:
                return
            if place.start not in self._adopted and (lock := place.take_lock()) is not None:
                thread = threading.Thread(target=self._send_left, args=(place, lock), daemon=True)
                self._adopted[place.start] = thread
                thread.start()

    def _send_left(self, place: Place, lock: int) -> None:
        """Send what a start left whose processes all have ended."""
        try:
            search = place.search()
            if not search or not place.record.exists():
                place.remove()
                return
            note_end(place, self._who, "its worker was killed")
            if place.left_for_s() > _KEPT_S:
                place.remove()
                return
            courier = self._courier(search, place)
            courier.start()
            is_over = courier.deliver(_LEFT_S)
            courier.end()
            if is_over:
                place.remove()
        except OSError as error:
            log.warning("%s: %s", place.path, error)
        finally:
            os.close(lock)


def note_end(place: Place, who: Mapping[str, Any], failure: str) -> None:
    """Note the end of a job whose supervisor did not."""
    if place.record.exists() and place.end() is None:
        end = {"host": who.get("host", ""), "failure": failure, "ended": time.time()}
        write_json(place.record / "end", end)
