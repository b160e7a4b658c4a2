"""The bill of a cluster by node and day; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from starcluster.aws.model import Instance
from starmint.bill import Bill, Charge, Ledger, NodeRun

_DAY = timedelta(days=1)
_CLOSE = timedelta(minutes=5)
_CENT = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBill:
    """What one node has cost.

    Attributes:
        state: ``runs``, ``ended``, or ``ended?`` if nobody saw when it ended.
        days: Dollars by day in UTC, as ``2026-01-31``.
        at_most: Dollars if it ran until it was first seen not to run.
    """

    node: str
    instance: str
    type: str
    zone: str
    spot: bool
    state: str
    hours: float
    dollars: float
    at_most: float
    days: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The bill of a cluster.

    Attributes:
        since, until: Its period.
        unknown: Types without a price, which are not in the dollars.
        per_hour: Dollars per hour of the nodes that run.
    """

    cluster: str
    region: str
    since: datetime
    until: datetime
    dollars: float
    at_most: float
    per_hour: float
    unknown: tuple[str, ...]
    nodes: tuple[NodeBill, ...]
    days: dict[str, float]


def statement(bill: Bill, now: datetime) -> Statement:
    """Return the bill by node and day, until ``now``; ``bill`` has at least one run."""
    low, high = Ledger(bill, now), Ledger(bill, now, careful=True)
    since = min(run.start for run in bill.runs)
    last = max(low.end_of(run) for run in bill.runs)
    days = _days(since, max(last, since))
    groups: dict[str, list[NodeRun]] = {}
    for run in bill.runs:
        groups.setdefault(run.id, []).append(run)
    nodes = tuple(_node(low, high, runs, days) for runs in groups.values())
    total = low.total()
    rate = low.per_hour()
    return Statement(
        cluster=bill.cluster,
        region=bill.region,
        since=since,
        until=last,
        dollars=total.dollars,
        at_most=max(high.total().dollars, total.dollars),
        per_hour=rate.dollars,
        unknown=tuple(sorted(total.unknown | rate.unknown)),
        nodes=nodes,
        days={name: sum(node.days.get(name, 0.0) for node in nodes) for name, _ in days},
    )


def _days(since: datetime, until: datetime) -> list[tuple[str, datetime]]:
    first = since.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    count = (until - first) // _DAY + 1
    return [(f"{first + n * _DAY:%Y-%m-%d}", first + n * _DAY) for n in range(count)]


def _node(
    low: Ledger, high: Ledger, runs: Sequence[NodeRun], days: Iterable[tuple[str, datetime]]
) -> NodeBill:
    last = runs[-1]
    whole = sum((low.charge(run) for run in runs), Charge())
    at_most = sum((high.charge(run) for run in runs), Charge())
    by_day = {
        name: sum((low.charge(run, start, start + _DAY) for run in runs), Charge())
        for name, start in days
    }
    return NodeBill(
        node=last.alias,
        instance=last.id,
        type=last.type,
        zone=last.zone,
        spot=last.spot,
        state="runs" if last.runs else "ended" if last.end else "ended?",
        hours=whole.hours,
        dollars=whole.dollars,
        at_most=max(at_most.dollars, whole.dollars),
        days={name: charge.dollars for name, charge in by_day.items() if charge.hours},
    )


def doubts(found: Statement, bill: Bill, instances: Iterable[Instance]) -> list[str]:
    """Return sentences on what the dollars may lack."""
    notes = []
    if found.unknown:
        notes.append(f"No price is known of {', '.join(found.unknown)}: not counted.")
    unseen = [node.node for node in found.nodes if node.at_most > node.dollars + _CENT]
    if unseen:
        notes.append(
            f"Nobody saw when {', '.join(unseen)} ended: up to "
            f"${found.at_most - found.dollars:.2f} more."
        )
    starts = {run.id: run.start for run in reversed(bill.runs)}
    earlier = [
        each.alias or each.id
        for each in instances
        if each.made and each.id in starts and starts[each.id] - each.made > _CLOSE
    ]
    if earlier:
        notes.append(
            f"{', '.join(sorted(earlier))} existed before the first record of it: earlier runs "
            "are not counted."
        )
    return notes
