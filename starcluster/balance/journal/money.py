"""What a cluster has cost and how long it has been idle, from one check to the next; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from starcluster.aws.model import Instance
from starcluster.launch import plan

_PAUSE = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One check of the balancer: a line of its journal.

    Attributes:
        time: In UTC.
        action: ``none``, or what the balancer did.
        dollars_per_hour: Of all nodes at that time, at on-demand prices and without disks.
        spent: Dollars since the start of the cluster.
        unknown: Instance types whose price AWS did not report; they are not counted.
        budget: Most dollars to spend; None for no limit.
        idle_since: Since when no job is left; None if jobs are left.
        interval_s: Time until the next check.
        by: The process, for people.
    """

    time: datetime
    nodes: int
    running_jobs: int
    waiting_jobs: int
    action: str
    why: str
    dollars_per_hour: float
    spent: float
    unknown: tuple[str, ...] = ()
    budget: float | None = None
    idle_since: datetime | None = None
    interval_s: float = 60.0
    by: str = ""

    def is_recent(self, now: datetime) -> bool:
        """Whether the balancer runs since this check; a check can add nodes for minutes."""
        return now - self.time <= _PAUSE + timedelta(seconds=2 * self.interval_s)


def spent(
    before: Entry | None,
    instances: Iterable[Instance],
    prices: Mapping[str, float],
    now: datetime,
) -> float:
    """Return dollars since the start of the cluster, at most.

    Nodes that ended since an earlier check are counted if the balancer has run since then.
    """
    running = [each for each in instances if each.state in ("pending", "running") and each.launched]
    if before is None:
        return _cost_since(running, prices, datetime.min.replace(tzinfo=now.tzinfo), now)
    if not before.is_recent(now):
        return before.spent + _cost_since(running, prices, before.time, now)
    new = [each for each in running if each.launched and each.launched > before.time]
    hours = (now - before.time).total_seconds() / 3600
    old = before.dollars_per_hour * max(hours, 0.0)
    return before.spent + old + _cost_since(new, prices, before.time, now)


def _cost_since(
    instances: Iterable[Instance], prices: Mapping[str, float], since: datetime, now: datetime
) -> float:
    total = 0.0
    for instance in instances:
        start = max(instance.launched or now, since)
        hours = max((now - start).total_seconds(), 0.0) / 3600
        total += plan.cost_of([instance], prices).dollars * hours
    return total


def idle_since(
    before: Entry | None, *, jobs_left: bool, started: datetime, now: datetime
) -> datetime | None:
    """Return since when no job is left, as far as checks show it; None if jobs are left.

    Args:
        started: When the master was started last.
    """
    if jobs_left:
        return None
    if before is None or before.idle_since is None or not before.is_recent(now):
        return now
    return max(before.idle_since, started)
