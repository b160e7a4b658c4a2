"""Which hosts fail to start jobs, and which hosts each trial avoids."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path

from spearmint.formatting import format_duration, plain
from spearmint.layout import read_json, write_json

_IN_A_ROW = 2  # failed starts until all trials avoid a host
_MOST_MOVES = 3  # then the reason is the trial's, or that of all trials
_PAUSE_S, _LONGEST_PAUSE_S = 600.0, 3600.0


@dataclass(slots=True)
class HostRecord:
    """The failed starts on a host since the last trial that started there.

    Attributes:
        failed: Number of failed starts in a row.
        at: Time of the last one in seconds since the epoch.
        reason: Its reason.
        since, until: While all trials avoid the host; 0 if they do not.
        pause_s: How long they avoid it the next time.
    """

    failed: int = 0
    at: float = 0.0
    reason: str = ""
    since: float = 0.0
    until: float = 0.0
    pause_s: float = _PAUSE_S


class HostStarts:
    """Decides which hosts trials avoid; keeps the decision in ``file`` for the next controller.

    A trial avoids each host that failed to start it. All trials avoid a host that failed to start
    two jobs in a row, for ten minutes, and longer if it fails again.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._hosts: dict[str, HostRecord] = {}
        self._trials: dict[str, set[str]] = {}
        self._known: frozenset[str] = frozenset()
        self._has_started = False
        self._notices: list[str] = []
        with contextlib.suppress(OSError, TypeError):
            read = read_json(file) or {}
            found = {name: HostRecord(**values) for name, values in read.items()}
            self._hosts = {name: host for name, host in found.items() if host.until > time.time()}

    def take(self) -> list[str]:
        """Return the messages since the last call."""
        notices, self._notices = self._notices, []
        return notices

    def avoided(self, token: str = "") -> tuple[str, ...]:
        """Return the hosts that all trials avoid, and in addition those of the trial ``token``.

        If no host would be left, return only those that all trials avoid: hosts that failed to
        start other trials can be added after this trial was moved, and its job would never start.
        """
        both = self._everyone() | self._trials.get(token, set())
        none_left = bool(self._known) and both >= self._known
        return tuple(sorted(self._everyone() if none_left else both))

    def _everyone(self) -> set[str]:
        return {name for name, host in self._hosts.items() if host.until > time.time()}

    def failed(self, token: str, name: str, reason: str, hosts: Collection[str]) -> bool:
        """Record a failed start on host ``name``; return whether to move the trial to another host.

        Args:
            hosts: All hosts that can run the trial.
        """
        self._known = frozenset(hosts)
        mine = self._trials.setdefault(token, set())
        if name in mine:  # a request of the user may name the host
            self._trials.pop(token)
            return False
        mine.add(name)
        host = self._hosts.setdefault(name, HostRecord())
        host.failed, host.at, host.reason = host.failed + 1, time.time(), reason
        if host.failed >= _IN_A_ROW and host.until <= time.time():
            self._exclude(name, host, hosts)
        if self._everyone() | mine >= self._known or self._is_own_fault(mine):
            self._trials.pop(token)
            return False
        return True

    def _is_own_fault(self, mine: set[str]) -> bool:
        """Return whether the reason is not that of the hosts: too many of them failed."""
        everyone = self._everyone()
        return len(mine - everyone) >= _MOST_MOVES or (
            not self._has_started and len(everyone) >= _MOST_MOVES
        )

    def _exclude(self, name: str, host: HostRecord, hosts: Collection[str]) -> None:
        if {*self._everyone(), name} >= set(hosts):
            return
        host.since, host.until = host.at, host.at + host.pause_s
        self._notices.append(
            f"Trials avoid host {name} for {format_duration(host.pause_s)}: "
            f"{host.failed} jobs in a row could not start there: {plain(host.reason)}"
        )
        host.pause_s = min(2 * host.pause_s, _LONGEST_PAUSE_S)
        self._save()

    def is_suspect(self, name: str) -> bool:
        """Return whether the last start on the host failed."""
        return name in self._hosts

    def started(self, name: str, at: float) -> None:
        """Record that a trial started on a host ``at`` seconds since the epoch."""
        self._has_started = True
        host = self._hosts.get(name)
        if host is not None and at > host.at:
            del self._hosts[name]
            if host.until:
                self._notices.append(f"A trial started on host {name}: trials use it again.")
                self._save()

    def expire(self) -> None:
        """Let trials use the hosts whose time is over; one failed start excludes them again."""
        over = {n: host for n, host in self._hosts.items() if 0 < host.until <= time.time()}
        for name, host in over.items():
            host.since, host.until, host.failed = 0.0, 0.0, _IN_A_ROW - 1
            self._notices.append(f"Trials may use host {name} again.")
            for mine in self._trials.values():
                mine.discard(name)
        if over:
            self._save()

    def _save(self) -> None:
        kept = {name: asdict(host) for name, host in self._hosts.items() if host.until}
        with contextlib.suppress(OSError):
            write_json(self._file, kept)
