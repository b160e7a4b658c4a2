"""A worker process: ``python -m spearmint.drivers.celery.consume``, settings on standard input.

The process stops to consume before it acknowledges a message, and continues when the trial has
ended. So no message waits behind a trial, and none stays unacknowledged while a trial runs: the
limits of brokers on that time (``consumer_timeout``, ``visibility_timeout``) do not matter.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from celery import bootsteps
from celery.worker.control import inspect_command
from celery.worker.strategy import default

from spearmint.drivers.celery.app import LIST, make_app
from spearmint.drivers.celery.broker import Broker
from spearmint.drivers.celery.messages import TASK
from spearmint.drivers.celery.slot import Slot, SlotSettings
from spearmint.trial.leftovers import adopt_orphans

log = logging.getLogger("spearmint.worker")

_PR_SET_PDEATHSIG = 1
_RESUME_S = 0.1


def main() -> int:
    """Consume until SIGTERM, then finish the trial."""
    given = json.load(sys.stdin)
    manager = given.pop("manager")
    adopt_orphans()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != manager:
        return 1  # it died before
    settings = SlotSettings(
        **{**given, "queues": tuple(given["queues"]), "roots": tuple(given["roots"])}
    )
    worker = make_worker(settings)
    worker.start()
    return int(worker.exitcode or 0)


def make_worker(settings: SlotSettings) -> Any:
    """Return the worker of Celery, with one thread for the trial."""
    os.environ.pop("CELERY_BROKER_URL", None)  # Celery prefers it to the given URL
    app = make_app(Broker(settings.url, settings.key, settings.ca), settings.base)
    slot = Slot(settings)
    gate = Gate(slot, settings.queues)
    app.task(name=TASK, ignore_result=True, Strategy=gate.strategy)(slot.run_task)
    app.steps["consumer"].add(type("Resume", (_Resume,), {"gate": gate}))
    inspect_command(name=LIST)(lambda state: dict(slot.status()))
    logging.getLogger("celery.worker.consumer.consumer").setLevel(logging.WARNING)
    logging.getLogger("celery.worker.strategy").setLevel(logging.WARNING)
    logging.getLogger("celery.app.trace").setLevel(logging.WARNING)
    name = settings.gpu or "cpu"
    return app.Worker(
        hostname=f"{name}.{os.getpid()}@{os.uname().nodename}",
        pool="threads",
        concurrency=1,
        loglevel="INFO",
        quiet=True,
        queues=list(settings.queues),
        without_gossip=True,
        without_mingle=True,
    )


class Gate:
    """Lets one message at a time through to Celery, and none while a trial runs."""

    def __init__(self, slot: Slot, queues: tuple[str, ...]) -> None:
        self._slot, self._queues = slot, queues
        self.wakes, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        slot.on_idle = self._note_idle

    def _note_idle(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._wake, b"\n")

    def strategy(self, task: Any, app: Any, consumer: Any) -> Callable[..., None]:
        """Return the handler of messages about trials; Celery calls it in its main loop."""
        handle = default(task, app, consumer)

        def on_message(
            message: Any, body: Any, ack: Any, reject: Any, callbacks: Any, **options: Any
        ) -> None:
            if self._slot.is_busy:
                reject(log, consumer.connection_errors, requeue=True)
            elif self._slot.take(_arguments(message)):
                for queue in self._queues:
                    consumer.cancel_task_queue(queue)
                handle(message, body, ack, reject, callbacks, **options)
            else:
                ack(log, consumer.connection_errors)

        return on_message

    def resume(self, consumer: Any) -> None:
        """Consume again if no trial runs."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.wakes, 1024)
        tasks = consumer.task_consumer
        if tasks is None or self._slot.is_busy:
            return
        for queue in self._queues:
            if not tasks.consuming_from(queue):
                consumer.add_task_queue(queue)


class _Resume(bootsteps.StartStopStep):  # type: ignore[misc,unused-ignore]
    """Calls :meth:`Gate.resume` when a trial has ended, and now and then after a new connection."""

    requires = ("celery.worker.consumer:Tasks",)
    gate: Gate

    def start(self, c: Any) -> None:
        """Set what Celery clears when it loses the connection."""
        c.timer.call_repeatedly(_RESUME_S, self.gate.resume, (c,))
        if c.hub is not None:
            c.hub.add_reader(self.gate.wakes, self.gate.resume, c)


def _arguments(message: Any) -> object:
    """Return the positional arguments of a task; None for another message."""
    try:
        args, kwargs, _ = message.payload
    except Exception:  # noqa: BLE001 - a foreign message can contain anything
        return None
    return args if not kwargs else None


if __name__ == "__main__":
    sys.exit(main())
