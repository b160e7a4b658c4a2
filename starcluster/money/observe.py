"""The runs of nodes, from what AWS lists at different times; no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from starcluster.aws.model import Instance
from starcluster.model import is_master
from starmint.bill import Bill, NodeRun, Price

_RUNS = ("pending", "running")
_FREE = timedelta(hours=1)
# Nodes of a launch can start before their master.
_TOGETHER = timedelta(minutes=10)
Key = tuple[str, datetime]


def observed(bill: Bill, instances: Iterable[Instance], now: datetime) -> Bill:
    """Return the bill after a look at all instances that AWS lists, also terminated ones."""
    runs = {(run.id, run.start): run for run in bill.runs}
    listed: dict[str, Instance] = {}
    for instance in instances:
        listed[instance.id] = instance
        if instance.launched is not None:
            key = (instance.id, instance.launched)
            runs[key] = _seen(runs.get(key), instance, now)
    for key, run in runs.items():
        if run.runs and run.start != _start_of(listed.get(run.id)):
            runs[key] = replace(run, gone=max(_start_of(listed.get(run.id)) or now, run.seen))
    return replace(bill, updated=now, runs=_sorted(runs))


def _start_of(instance: Instance | None) -> datetime | None:
    return instance.launched if instance is not None else None


def _seen(known: NodeRun | None, instance: Instance, now: datetime) -> NodeRun:
    assert instance.launched is not None  # noqa: S101 - the caller has checked it
    start = instance.launched
    run = known or NodeRun(
        id=instance.id,
        alias=instance.alias or instance.id,
        type=instance.type,
        zone=instance.zone,
        spot=instance.is_spot,
        start=start,
        seen=start,
        free=instance.prepaid,
    )
    if instance.alias and run.alias != instance.alias:  # AWS lists an instance before its tags
        run = replace(run, alias=instance.alias)
    if instance.state in _RUNS:
        return replace(run, seen=max(now, start), end=None, gone=None)
    end = run.end or (max(instance.ended, start) if instance.ended else None)
    free = run.free or (instance.interrupted and end is not None and end - start < _FREE)
    return replace(run, end=end, gone=None if end else run.gone or max(now, start), free=free)


def merged(one: Bill, other: Bill) -> Bill:
    """Return what two records of the same cluster know together."""
    runs = {(run.id, run.start): run for run in one.runs}
    for run in other.runs:
        key = (run.id, run.start)
        runs[key] = _same(runs[key], run) if key in runs else run
    return replace(
        one,
        updated=max(one.updated, other.updated),
        runs=_sorted(runs),
        prices=merged_prices(one.prices, other.prices),
    )


def merged_prices(*groups: Iterable[Price]) -> tuple[Price, ...]:
    """Return all prices in order of time, each change once."""
    found = {(price.type, price.zone, price.time): price for group in groups for price in group}
    kept: dict[tuple[str, str], list[Price]] = {}
    for price in sorted(found.values(), key=lambda price: (price.time, price.type, price.zone)):
        steps = kept.setdefault((price.type, price.zone), [])
        if not steps or steps[-1].dollars != price.dollars:
            steps.append(price)
    return tuple(price for steps in kept.values() for price in steps)


def _same(one: NodeRun, other: NodeRun) -> NodeRun:
    """Return one run of which two records know."""
    late, early = (one, other) if one.seen >= other.seen else (other, one)
    ends = [run.end for run in (one, other) if run.end is not None]
    free = one.free or other.free
    alias = late.alias if late.alias != late.id else early.alias
    if ends:
        return replace(late, alias=alias, end=min(ends), gone=None, free=free)
    gone = late.gone
    if early.gone is not None and early.gone > late.seen:
        gone = min(early.gone, gone) if gone else early.gone
    return replace(late, alias=alias, gone=gone, free=free)


def _sorted(runs: Mapping[Key, NodeRun]) -> tuple[NodeRun, ...]:
    def rank(run: NodeRun) -> tuple[bool, str, datetime, str]:
        return (not is_master(run.alias), run.alias, run.start, run.id)

    return tuple(sorted(runs.values(), key=rank))


def life_of(bill: Bill) -> str:
    """Return the instance id of the master; a new cluster of the same name has another one."""
    masters = [run for run in bill.runs if is_master(run.alias)]
    return min(masters, key=lambda run: run.start).id if masters else ""


def lives_of(bills: Mapping[str, Bill], instances: Sequence[Instance]) -> dict[str, list[Instance]]:
    """Return which instances belong to which cluster among all of one name.

    Args:
        bills: The records by the id of the master.
    """
    owner = {run.id: life for life, bill in bills.items() for run in bill.runs}
    starts = {
        life: min((run.start for run in bill.runs if run.id == life), default=bill.updated)
        for life, bill in bills.items()
    }
    for each in instances:
        if is_master(each.alias) and each.launched is not None and each.id not in owner:
            owner[each.id] = each.id
            starts[each.id] = each.made or each.launched
    found: dict[str, list[Instance]] = {life: [] for life in starts}
    for each in instances:
        if each.launched is None:
            continue
        life = owner.get(each.id) or _life_at(starts, each.launched)
        if life:
            found.setdefault(life, []).append(each)
    return found


def _life_at(starts: Mapping[str, datetime], launched: datetime) -> str:
    """Return the last cluster that had started when a node was launched."""
    begun = [life for life, start in starts.items() if start <= launched + _TOGETHER]
    return max(begun or starts, key=lambda life: starts[life], default="")
