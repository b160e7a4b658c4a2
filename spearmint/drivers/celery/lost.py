"""Which jobs have no sign of life, and which messages the broker has lost."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from spearmint.drivers.celery.records import Record

_LOOK_S = 5.0
_RESEND_S = (10.0, 300.0)  # shortest and longest pause between two sendings


class LostJobs:
    """The time since each lease last changed, by this process's clock: hosts' clocks may differ."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._seen: dict[str, tuple[str, float]] = {}

    def is_lost(self, record: Record) -> bool:
        """Return whether the lease of a claimed job has not changed for too long."""
        now = time.monotonic()
        lease, since = self._seen.get(record.id, ("", now))
        if record.id not in self._seen or lease != record.lease:
            self._seen[record.id] = (record.lease, now)
            return False
        return now - since > self._lease_s

    def keep(self, ids: Collection[str]) -> None:
        """Forget all jobs except ``ids``."""
        self._seen = {id: seen for id, seen in self._seen.items() if id in ids}


class LostMessages:
    """Decides when to send messages again: if a queue has fewer messages than jobs that wait."""

    def __init__(self) -> None:
        self._looked = time.monotonic()
        self._missing_since: float | None = None
        self._pause_s = _RESEND_S[0]

    def is_due(self, waiting: Sequence[str]) -> bool:
        """Return whether to ask the broker how many messages there are."""
        if not waiting:
            self._missing_since, self._pause_s = None, _RESEND_S[0]
            return False
        return time.monotonic() - self._looked > _LOOK_S

    def look(self, waiting: Sequence[str], messages: int) -> Sequence[str]:
        """Return the jobs of which to send the message again.

        A message is missing for a moment while a worker reads it, so one look does not suffice.
        """
        self._looked = now = time.monotonic()
        if messages >= len(waiting):
            self._missing_since = None
            return ()
        if self._missing_since is None:
            self._missing_since = now
        if now - self._missing_since < self._pause_s:
            return ()
        self._missing_since, self._pause_s = None, min(2 * self._pause_s, _RESEND_S[1])
        return waiting
