"""Move trials to other hosts if a host cannot start them, or if the queue reruns them for ever."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile

from spearmint.drivers.base import JobEnd
from spearmint.drivers.host_starts import HostStarts
from spearmint.drivers.queue import (
    EndedRun,
    FailedStart,
    Queue,
    QueueHost,
    QueueJob,
    QueueJobState,
    room_for,
)
from spearmint.drivers.queue_trials import QueuedTrial
from spearmint.errors import DriverError
from spearmint.formatting import plain
from spearmint.layout import TrialFolder, read_json
from spearmint.resources import Resources

_RERUNS_ON_A_HOST = 3
_RERUNS = 6
_SHORT_S = 60.0  # a longer run is not a failed start
_ASK_S = 5.0
_ACCOUNTING_S = 10.0  # reading the accounting can take long
_NEVER = float("-inf")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_BEFORE_START_S = 300.0  # a job that ran longer did start


class QueueStarts:
    """Finds trials whose jobs do not start, and decides what happens to them.

    Attributes:
        hosts: The hosts that trials avoid.
    """

    def __init__(self, queue: Queue, need: Resources, hosts: HostStarts) -> None:
        self._queue, self._need, self.hosts = queue, need, hosts
        self._ends: dict[str, JobEnd] = {}
        self._left: set[str] = set()  # jobs in error that do not move
        self._asked: dict[str, float] = {}
        self._accounted = _NEVER

    def look(
        self, listed: Mapping[str, QueueJob], running: Mapping[str, QueuedTrial]
    ) -> dict[str, QueuedTrial]:
        """Return the jobs to cancel, because their trials need another job, by the queue's id."""
        self.hosts.expire()
        moved = {}
        for id, trial in running.items():
            job = listed.get(id)
            if job is None or job.state is QueueJobState.ENDING:
                continue
            if id not in self._ends and (end := self._end(job, trial)):
                self._ends[id] = end
            if id in self._ends:
                moved[id] = trial
        return moved

    def end_of(self, id: str) -> JobEnd | None:
        """Return why a job was cancelled by the result of :meth:`look`; None if it was not."""
        return self._ends.get(id)

    def _end(self, job: QueueJob, trial: QueuedTrial) -> JobEnd | None:
        if job.state is not QueueJobState.ERROR:
            self._left.discard(job.id)
        if job.state is QueueJobState.ERROR:
            return self._end_of_error(job, trial)
        if job.state is QueueJobState.RUNNING:
            self._see_start(job, trial.folder)
        return self._end_of_reruns(job, trial) if job.is_rerun else None

    def _see_start(self, job: QueueJob, folder: TrialFolder) -> None:
        if self.hosts.is_suspect(job.host) and (started := _started(folder)):
            self.hosts.started(job.host, started)

    def _end_of_error(self, job: QueueJob, trial: QueuedTrial) -> JobEnd | None:
        if job.id in self._left:
            return None
        start = self._ask(job.id)
        if start is not None and self._moves(trial, start):
            return _moved(start)
        self._left.add(job.id)
        return None

    def _end_of_reruns(self, job: QueueJob, trial: QueuedTrial) -> JobEnd | None:
        if time.monotonic() - self._asked.get(job.id, _NEVER) < _ASK_S:
            return None
        self._asked[job.id] = time.monotonic()
        began, start = _started(trial.folder), self._ask(job.id)
        if start is None or start.at <= began:
            row = self._last_runs(job.id) if not began else []
            start = _failure_of(row)
            if len(row) >= _RERUNS and (start is None or start.times < _RERUNS_ON_A_HOST):
                hosts = ", ".join(dict.fromkeys(run.host for run in row))
                return JobEnd(f"the queue reran its job {len(row)} times in a row on {hosts}")
        if start is None or start.times < _RERUNS_ON_A_HOST:
            return None
        if self._moves(trial, start):
            return _moved(start)
        if start.times < _RERUNS:
            return None
        times = f"{start.times} times in a row"
        return JobEnd(f"could not start on {start.host}, {times}: {plain(start.reason)}")

    def _last_runs(self, id: str) -> list[EndedRun]:
        """Return the last runs of a job that all were short, the latest first."""
        if time.monotonic() - self._accounted < _ACCOUNTING_S:
            return []
        runs: Sequence[EndedRun] | None = None
        with contextlib.suppress(DriverError):
            runs = self._queue.accounting(id)
        self._accounted = time.monotonic()
        latest_first = sorted(runs or (), key=lambda run: run.ended, reverse=True)
        return list(takewhile(lambda run: run.seconds < _SHORT_S, latest_first))

    def _ask(self, id: str) -> FailedStart | None:
        with contextlib.suppress(DriverError):
            return self._queue.failed_start(id)
        return None

    def _moves(self, trial: QueuedTrial, start: FailedStart) -> bool:
        hosts: Sequence[QueueHost] | None = None
        with contextlib.suppress(DriverError):
            hosts = self._queue.hosts(self._need)
        name = _name_in(start.host, [host.name for host in hosts or ()])
        if not name:
            return False
        usable = {host.name for host in hosts or () if room_for([host], self._need)}
        return self.hosts.failed(trial.token, name, start.reason, usable | {name})

    def end_before_start(
        self, trial: QueuedTrial, runs: Sequence[EndedRun] | None
    ) -> JobEnd | None:
        """Return the end of a job that exited before the trial's process; None for other ends."""
        if not runs or _started(trial.folder):
            return None
        last = max(runs, key=lambda run: run.ended)
        ended_itself = not (last.signal or last.timed_out or last.limit)
        if not (ended_itself and last.host and last.seconds < _BEFORE_START_S):
            return None
        if not last.failure and not last.exit_status:
            return None
        what = last.failure or f"its job exited with status {last.exit_status}"
        start = FailedStart(host=last.host, reason=what)
        return _moved(start) if self._moves(trial, start) else None


def _failure_of(runs: Sequence[EndedRun]) -> FailedStart | None:
    """Return the failed starts of the last host in ``runs``; None without its name."""
    if not runs or not runs[0].host:
        return None
    last = runs[0]
    same = list(takewhile(lambda run: run.host == last.host, runs))
    reason = last.failure or f"its job exited with status {last.exit_status}"
    return FailedStart(host=last.host, reason=reason, times=len(same), at=last.ended)


def _name_in(host: str, hosts: Sequence[str]) -> str:
    """Return the name of ``host`` among ``hosts``, which may have a domain; empty if it is new."""
    short = host.partition(".")[0].lower()
    found = [name for name in hosts if name == host or name.partition(".")[0].lower() == short]
    return found[0] if found and _NAME.fullmatch(found[0]) else ""


def _moved(start: FailedStart) -> JobEnd:
    return JobEnd(f"it could not start on {start.host}: {plain(start.reason)}", counts=False)


def _started(folder: TrialFolder) -> float:
    """Return when the trial's process started, in seconds since the epoch; 0 if it did not."""
    with contextlib.suppress(OSError, TypeError, ValueError):
        return float((read_json(folder.runner) or {}).get("start", 0))
    return 0.0
