"""Messages about jobs that are held, suspended, preempted or in error, or cannot be cancelled."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection

from spearmint.drivers.queue import Dialect, Queue, QueueJob, QueueJobState
from spearmint.errors import DriverError

_LOOKS = 5  # at a job in error before its message says that there is no reason


class QueueNotices:
    """Collects one message for each change of a job's state, with the command that fixes it."""

    def __init__(self, queue: Queue, dialect: Dialect) -> None:
        self._queue, self._dialect = queue, dialect
        self._states: dict[str, QueueJobState] = {}
        self._unexplained: Counter[str] = Counter()
        self._notices: list[str] = []

    def take(self) -> list[str]:
        """Return the messages since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def add(self, text: str) -> None:
        """Add a message; nothing if ``text`` is empty."""
        self._notices += [text] if text else []

    def see(self, job: QueueJob, trial: str) -> None:
        """Add a message about ``job``, which runs ``trial``, if its state has changed."""
        if self._states.get(job.id, QueueJobState.PENDING) is job.state:
            return
        reason = self._reason(job) if job.state is QueueJobState.ERROR else ""
        if job.state is QueueJobState.ERROR and not reason:  # not known yet, or not answered
            self._unexplained[job.id] += 1
            if self._unexplained[job.id] < _LOOKS:
                return
        self._states[job.id] = job.state
        if text := self._text(job, reason):
            self._notices.append(f"job {job.id} ({trial}) {text}")

    def cannot_cancel(self, ids: Collection[str]) -> None:
        """Add a message about jobs that the queue does not cancel; nothing without ids."""
        if not ids:
            return
        listed = " ".join(sorted(ids))
        forget = self._dialect.forget.format(id=listed)
        self._notices.append(
            f"cannot cancel jobs {listed}: their host may be unreachable."
            + (f" Remove them as a manager of the queue: {forget}" if forget else "")
        )

    def _text(self, job: QueueJob, reason: str) -> str:
        dialect, state = self._dialect, f" ({job.text})" if job.text else ""
        match job.state:
            case QueueJobState.HELD:
                return f"is held{state}." + _advice(" Release it: ", dialect.release, job)
            case QueueJobState.SUSPENDED:
                return f"is suspended{state}." + _advice(" Resume it: ", dialect.resume, job)
            case QueueJobState.PREEMPTED:
                return f"was preempted{state}; {dialect.queue} reruns it."
            case QueueJobState.ERROR:
                retry = _advice("\nFix this, then run: ", dialect.retry, job)
                cancel = _advice("    or delete it: ", dialect.cancel, job)
                why = reason or f"{dialect.queue} gives no reason"
                return f"is in error state{state}: {why}{retry}{cancel}"
        return ""

    def _reason(self, job: QueueJob) -> str:
        with contextlib.suppress(DriverError):
            return self._queue.reason(job.id)
        return ""


def _advice(words: str, command: str, job: QueueJob) -> str:
    return words + command.format(id=job.id) if command else ""
