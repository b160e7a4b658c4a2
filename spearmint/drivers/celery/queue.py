"""The queue of trials that Celery's workers run."""

from __future__ import annotations

import contextlib
import shlex
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from spearmint.drivers.base import DriverSettings
from spearmint.drivers.celery.app import Client
from spearmint.drivers.celery.broker import find_broker, queue_name
from spearmint.drivers.celery.job import command, described
from spearmint.drivers.celery.lost import LostJobs, LostMessages
from spearmint.drivers.celery.messages import arguments
from spearmint.drivers.celery.obstacles import GPU, obstacle_of
from spearmint.drivers.celery.post import Post, check_transfer
from spearmint.drivers.celery.records import Record, Records
from spearmint.drivers.queue import (
    EndedRun,
    Obstacle,
    Queue,
    QueueHost,
    QueueJob,
    QueueJobState,
    SubmitSpec,
)
from spearmint.errors import DriverError, DriverUnreachable
from spearmint.resources import Resources

LEASE_S = 30.0
"""Seconds without a sign of life after which a trial counts as lost."""

_SLOTS_S = 10.0  # how long an answer of the workers is used


class CeleryQueue(Queue):
    """Describes jobs in the experiment's directory, and tells workers of them by the broker.

    A worker that does not see this directory asks the controller for the job (:mod:`.post`).
    """

    def __init__(
        self,
        settings: DriverSettings,
        *,
        client: Client | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        need, broker = settings.resources, find_broker()
        check_transfer(need.file_transfer, broker)
        self._experiment = settings.directory.resolve()
        self._base = queue_name(need.queue)
        self._name = self._base + (GPU if need.gpus else "")
        self._key, self._lease_s = broker.key, lease_s
        self._client = client or Client(broker, self._base)
        self._records = Records(self._experiment)
        self._lost, self._unsent = LostJobs(lease_s), LostMessages()
        self._resending = threading.Thread()
        self._slots: tuple[float, list[Mapping[str, Any]]] = (float("-inf"), [])
        self._records.forget_old()
        self._post = Post(broker, self._experiment, need.file_transfer)

    def submit(self, spec: SubmitSpec, *, inherit: Sequence[int]) -> str:
        """Write the job, and send its message."""
        try:
            self._post.start()
            is_sent = bool(self._post.search)
            job = described(spec, fence_s=self._lease_s / 2, is_sent=is_sent)
            id = self._records.create(spec.token, job)
        except OSError as error:
            raise DriverError(f"cannot write a job: {error}") from error
        try:
            self._send(id)
        except DriverUnreachable:
            if self._withdraw(id):  # now no worker can start it
                raise
        return id

    def _send(self, id: str) -> None:
        experiment = None if self._post.is_forced else self._experiment
        message = arguments(self._key, self._name, experiment, id, self._post.search)
        self._client.send(self._name, message, id)

    def _withdraw(self, id: str) -> bool:
        """End a job that no worker has claimed; return False if one has."""
        if not self._records.claim(id, {"host": "", "since": time.time()}):
            return False
        self._records.close(id, {"signal": 15, "ended": time.time()})
        return True

    def jobs(self) -> Sequence[QueueJob]:
        """Read the folders of jobs; close those that ended or are lost, and resend messages."""
        try:
            self._post.start()
            left = [record for record in self._records.all() if not self._closes(record)]
            self._lost.keep({record.id for record in left})
        except OSError as error:
            raise DriverUnreachable(f"cannot read {self._records.base}: {error}") from error
        self._post.receive({record.id.partition(".")[0] for record in left})
        self._resend([record.id for record in left if record.claim is None])
        return [_listed(record) for record in left]

    def fetch(self) -> None:
        """Store what jobs on hosts that share no files have sent."""
        self._post.receive(None)

    def _closes(self, record: Record) -> bool:
        end = record.end
        if end is None and record.claim is not None and self._lost.is_lost(record):
            host = record.claim.get("host", "")
            reason = f"no sign of life of its worker for {self._lease_s:g} s"
            end = {"host": host, "failure": reason, "ended": time.time()}
        if end is None:
            return False
        self._records.close(record.id, end)
        return True

    def _resend(self, waiting: Sequence[str]) -> None:
        """Look in the background for messages that the broker has lost.

        A broker that is down must not delay what the folders tell about running trials.
        """
        if self._unsent.is_due(waiting) and not self._resending.is_alive():
            self._resending = threading.Thread(target=self._send_lost, args=(waiting,), daemon=True)
            self._resending.start()

    def _send_lost(self, waiting: Sequence[str]) -> None:
        """Send messages again that the broker has lost; a claim prevents a second run."""
        with contextlib.suppress(DriverUnreachable):
            for id in self._unsent.look(waiting, self._client.waiting(self._name)):
                self._send(id)

    def cancel(self, ids: Collection[str]) -> None:
        """End waiting jobs; ask the hosts of others to end them."""
        try:
            for id in ids:
                if not self._withdraw(id):
                    self._records.ask_to_stop(id)
        except OSError as error:
            raise DriverUnreachable(f"cannot write {self._records.base}: {error}") from error

    def hosts(self, need: Resources) -> Sequence[QueueHost]:
        """Ask the workers: each runs one trial at a time, on at most one GPU."""
        usable = [slot for slot in self._answers() if slot.get("gpu") or not need.gpus]
        names = dict.fromkeys(str(slot["host"]) for slot in usable)
        counts = {name: sum(slot["host"] == name for slot in usable) for name in names}
        return [
            QueueHost(name=name, slots=count * need.slots, gpus=count if need.gpus else 0)
            for name, count in counts.items()
        ]

    def _answers(self) -> list[Mapping[str, Any]]:
        asked, slots = self._slots
        if time.monotonic() - asked > _SLOTS_S:
            slots = self._client.slots()
            # Workers that connect again after a restart of the broker answer soon.
            self._slots = (time.monotonic() if slots else float("-inf"), slots)
        mine = {self._base, self._name}
        return [slot for slot in slots if mine & set(slot.get("queues", ()))]

    def accounting(self, id: str) -> Sequence[EndedRun]:
        """Read how the job ended."""
        end = self._records.end_of(id)
        if end is None:
            return []
        return [
            EndedRun(
                host=str(end.get("host", "")),
                ended=float(end.get("ended", 0)),
                seconds=float(end.get("seconds", 0)),
                exit_status=int(end.get("exit_status", 0)),
                signal=int(end.get("signal", 0)),
                timed_out=bool(end.get("timed_out")),
                failure=str(end.get("failure", "")),
            )
        ]

    def obstacle(self, id: str) -> Obstacle | None:
        """Ask the workers whether one of them can run the job."""
        try:
            slots = self._answers()
        except DriverUnreachable as error:
            return Obstacle(reason=error.what, fix=error.fix, passes=True)
        usable = [slot for slot in slots if self._name in slot.get("queues", ())]
        return obstacle_of(usable, self._experiment, self._base, self._name, self._post)

    def preview(self, spec: SubmitSpec) -> str:
        """Return the name of the queue and the command that the worker runs."""
        argv = shlex.join(command(spec))
        return f"# Celery queue {self._name}\n{argv} >> {shlex.quote(str(spec.output))} 2>&1"


def _listed(record: Record) -> QueueJob:
    token = record.id.partition(".")[0]
    if record.claim is None:
        return QueueJob(id=record.id, token=token, state=QueueJobState.PENDING, text="waiting")
    host = str(record.claim.get("host", ""))
    return QueueJob(
        id=record.id, token=token, state=QueueJobState.RUNNING, text="running", host=host
    )
