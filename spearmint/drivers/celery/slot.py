"""What one worker process runs: at most one trial at a time, under a life line."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.messages import Message, NotHere, Refused, checked
from spearmint.drivers.celery.post.host import Host
from spearmint.drivers.celery.post.store import Store
from spearmint.drivers.celery.records import Records
from spearmint.drivers.celery.watchers import Watchers

log = logging.getLogger("spearmint.worker")

_SECRET = ("SPEARMINT_BROKER", "CELERY_")  # variables that trials do not get


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSettings:
    """The arguments of a worker process.

    Attributes:
        url, key, ca: The broker, as in :class:`~spearmint.drivers.celery.broker.Broker`.
        base: Name of the queue, which is also that of the control messages.
        queues: The queues from which it takes jobs.
        roots: Directories below which experiments may be.
        gpu: UUID of its GPU; empty for none.
        gpu_lock: File descriptor with the lock of the GPU; -1 for none.
        store: URL of the Redis that carries files; empty for none.
        busy: File descriptor of a file whose first byte says whether it has a job; -1 for none.
    """

    url: str
    key: str
    ca: str
    base: str
    queues: tuple[str, ...]
    roots: tuple[str, ...]
    gpu: str = ""
    gpu_lock: int = -1
    store: str = ""
    busy: int = -1


class Slot:
    """The state of a worker process, shared by Celery's main loop and the thread of the trial.

    Attributes:
        is_busy: Whether it has a job.
        on_idle: Called in the thread of a trial that has ended.
    """

    def __init__(self, settings: SlotSettings) -> None:
        self._settings = settings
        self._roots = [Path(root) for root in settings.roots]
        self._lock = threading.Lock()
        self._next: Callable[[], None] | None = None
        self._running: dict[str, Any] = {}
        self.is_busy = False
        self.on_idle: Callable[[], None] = lambda: None
        self._who = {"host": os.uname().nodename, "pid": os.getpid(), "gpu": settings.gpu}
        self._host = self._make_host()
        self._watchers = Watchers()

    def _make_host(self) -> Host | None:
        """Return what runs jobs of experiments that are not here; None if nothing can."""
        settings = self._settings
        if not settings.store or not settings.key:
            return None
        try:
            store = Store(settings.store, settings.ca)
            host = Host(store, settings.key, self._roots[0], self._who)
        except OSError as error:
            log.warning("runs only experiments that are below --root: %s", error)
            return None
        threading.Thread(target=host.adopt_left, daemon=True).start()
        return host

    def take(self, args: object) -> bool:
        """Check a message and claim its job; return whether :meth:`run_task` must follow."""
        settings = self._settings
        try:
            message = checked(args, key=settings.key, queues=settings.queues)
            run = self._claim(message)
        except Refused as refused:
            log.warning("refused a message: %s", refused)
            return False
        except OSError as error:
            log.warning("cannot claim a job: %s", error)  # the controller sends it again
            return False
        if run is None:
            log.info("job %s has ended, or another worker runs it", message.id)
            return False
        self._next = run
        self._set_busy(True)
        return True

    def _set_busy(self, value: bool) -> None:
        self.is_busy = value
        if self._settings.busy >= 0:
            os.pwrite(self._settings.busy, bytes([value]), 0)

    def _claim(self, message: Message) -> Callable[[], None] | None:
        """Claim a job in the experiment's directory; that of another host is claimed later."""
        try:
            records = message.records(self._roots)
        except NotHere:
            if self._host is None or not message.search:
                raise
            return partial(self._run_away, self._host, message.search, message.id)
        if not records.claim(message.id, {**self._who, "since": time.time()}):
            return None
        return partial(self._run_here, records, message.id)

    def run_task(self, *args: object) -> None:
        """Run the job that :meth:`take` claimed, and return when all its processes have ended."""
        if self._next is None:
            return
        run, self._next = self._next, None
        try:
            run()
        except Exception as error:  # noqa: BLE001 - the worker must continue
            log.warning("%s: %s", type(error).__name__, error)
        finally:
            with self._lock:
                self._running = {}
            self._set_busy(False)
            self.on_idle()

    def _run_here(self, records: Records, id: str) -> None:
        try:
            job = records.job(id)
            if job is None:
                return  # cancelled since
            self._note_start(id, job["label"])
            self._supervise(_task(records, id, job))
            folder = records.folder(id)
            if (folder / "job.json").exists() and not (folder / "end").exists():
                _end(records, id, "the process that watched it was killed")
            log.info("%s has ended", job["label"])
        except Exception as error:
            # The controller must learn of any end.
            _end(records, id, f"the worker could not run it: {error}")
            raise

    def _run_away(self, host: Host, search: str, id: str) -> None:
        host.run(search, id, self._supervise, partial(self._note_start, id), _inherited())

    def _note_start(self, id: str, label: str) -> None:
        with self._lock:
            self._running = {"trial": label, "job": id, "since": time.time()}
        log.info("%s starts (job %s)", label, id)

    def _supervise(self, task: dict[str, Any], lock: int = -1) -> None:
        gpu = self._settings.gpu if task.pop("gpus") else ""
        task["environment"]["CUDA_VISIBLE_DEVICES"] = gpu
        self._watchers.run(task, [fd for fd in (self._settings.gpu_lock, lock) if fd >= 0])

    def status(self) -> Mapping[str, Any]:
        """Return what ``spearmint workers`` lists."""
        settings = self._settings
        with self._lock:
            running = dict(self._running)
        return {
            "host": os.uname().nodename,
            "pid": os.getpid(),
            "gpu": settings.gpu,
            "queues": list(settings.queues),
            "roots": list(settings.roots),
            "transfers": self._host is not None,
            "trial": running.get("trial", ""),
            "job": running.get("job", ""),
            "since": running.get("since"),
        }


def _inherited() -> dict[str, str]:
    """Return the environment of this process that trials get."""
    return {k: v for k, v in os.environ.items() if not k.startswith(_SECRET)}


def _task(records: Records, id: str, job: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **{name: job[name] for name in ("argv", "directory", "output", "walltime_s", "gpus")},
        "fence_s": job["fence_s"],
        "folder": str(records.folder(id)),
        "environment": {**_inherited(), **job["environment"]},
    }


def _end(records: Records, id: str, failure: str) -> None:
    with contextlib.suppress(OSError):
        records.close(id, {"host": os.uname().nodename, "failure": failure, "ended": time.time()})
