"""What one worker process runs: at most one trial at a time, under a life line."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spearmint.drivers.celery.messages import Refused, checked
from spearmint.drivers.celery.records import Records
from spearmint.trial.supervise import descendants

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
    """

    url: str
    key: str
    ca: str
    base: str
    queues: tuple[str, ...]
    roots: tuple[str, ...]
    gpu: str = ""
    gpu_lock: int = -1


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
        self._next: tuple[Records, str] | None = None
        self._running: dict[str, Any] = {}
        self.is_busy = False
        self.on_idle: Callable[[], None] = lambda: None

    def take(self, args: object) -> bool:
        """Check a message and claim its job; return whether :meth:`run_task` must follow."""
        settings = self._settings
        try:
            records, id = checked(args, key=settings.key, queues=settings.queues, roots=self._roots)
            who = {"host": os.uname().nodename, "pid": os.getpid(), "gpu": settings.gpu}
            if not records.claim(id, {**who, "since": time.time()}):
                log.info("job %s has ended, or another worker runs it", id)
                return False
        except Refused as refused:
            log.warning("refused a message: %s", refused)
            return False
        except OSError as error:
            log.warning("cannot claim a job: %s", error)  # the controller sends it again
            return False
        self.is_busy, self._next = True, (records, id)
        return True

    def run_task(self, *args: object) -> None:
        """Run the job that :meth:`take` claimed, and return when all its processes have ended."""
        if self._next is None:
            return
        (records, id), self._next = self._next, None
        try:
            self._run(records, id)
        except Exception as error:  # noqa: BLE001 - the controller must learn of any end
            log.warning("job %s: %s: %s", id, type(error).__name__, error)
            _end(records, id, f"the worker could not run it: {error}")
        finally:
            with self._lock:
                self._running = {}
            self.is_busy = False
            self.on_idle()

    def _run(self, records: Records, id: str) -> None:
        job = records.job(id)
        if job is None:
            return  # cancelled since
        with self._lock:
            self._running = {"trial": job["label"], "job": id, "since": time.time()}
        log.info("%s starts (job %s)", job["label"], id)
        _supervise(self._task(records, id, job), self._settings.gpu_lock)
        if (records.folder(id) / "job.json").exists() and not (records.folder(id) / "end").exists():
            _end(records, id, "the process that watched it was killed")
        log.info("%s has ended", job["label"])

    def _task(self, records: Records, id: str, job: Mapping[str, Any]) -> dict[str, Any]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(_SECRET)}
        gpu = self._settings.gpu if job["gpus"] else ""
        return {
            **{name: job[name] for name in ("argv", "directory", "output", "walltime_s")},
            "fence_s": job["fence_s"],
            "folder": str(records.folder(id)),
            "environment": {**inherited, **job["environment"], "CUDA_VISIBLE_DEVICES": gpu},
        }

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
            "trial": running.get("trial", ""),
            "job": running.get("job", ""),
            "since": running.get("since"),
        }


def _supervise(task: dict[str, Any], gpu_lock: int) -> None:
    """Run the task in a process that holds the other end of the life line."""
    read_end, write_end = os.pipe()
    try:
        passed = [fd for fd in (read_end, gpu_lock) if fd >= 0]
        watcher = subprocess.Popen(
            [sys.executable, "-P", "-m", "spearmint.trial.supervise"],
            stdin=subprocess.PIPE,
            cwd="/",
            env={**os.environ, **_import_path()},
            pass_fds=passed,
            start_new_session=True,
        )
        watcher.communicate(json.dumps({**task, "life_line": read_end}).encode())
    finally:
        os.close(read_end)
        os.close(write_end)
    end_children()


def _import_path() -> Mapping[str, str]:
    """Let the supervisor import this package, wherever this process found it."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def end_children(keep: Sequence[int] = ()) -> None:
    """Kill the processes that a killed supervisor left to this process, which adopts them."""
    deadline = time.monotonic() + 10.0
    while time.monotonic() < deadline:
        left = [pid for pid in descendants(os.getpid()) if pid not in keep]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.02)


def _end(records: Records, id: str, failure: str) -> None:
    with contextlib.suppress(OSError):
        records.close(id, {"host": os.uname().nodename, "failure": failure, "ended": time.time()})
