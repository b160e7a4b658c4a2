"""Add to a bill the prices that its runs need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.errors import AwsError
from starcluster.money.observe import merged_prices
from starmint.bill import Bill, Ledger, NodeRun, Price

_RECENT = timedelta(days=1)


def new_on_demand(
    ec2: Ec2, bills: Iterable[Bill], now: datetime
) -> tuple[list[Price], list[AwsError]]:
    """Return the on-demand prices that bills lack, and the errors of AWS."""
    wanted: set[str] = set()
    known: set[str] = set()
    for bill in bills:
        wanted |= {run.type for run in bill.runs if not run.free}
        known |= {price.type for price in bill.prices if not price.zone}
    found, error = prices.on_demand_or_error(ec2, wanted - known)
    new = [Price(type=name, zone="", time=now, dollars=value) for name, value in found.items()]
    return new, [error] if error is not None else []


def with_prices(
    ec2: Ec2, bill: Bill, now: datetime, on_demand: Iterable[Price], *, thorough: bool
) -> tuple[Bill, list[AwsError]]:
    """Return the bill with its prices, and the errors of AWS.

    Args:
        on_demand: Of all types.
        thorough: Also ask for spot prices of nodes that ended long ago.
    """
    errors: list[AwsError] = []
    paid = [run for run in bill.runs if not run.free]
    types = {run.type for run in paid}
    new = [price for price in on_demand if price.type in types]
    spot = [run for run in paid if run.spot and (thorough or _is_recent(bill, run, now))]
    try:
        new += _spot(ec2, bill, spot, now)
    except AwsError as refused:
        errors.append(refused)
    return replace(bill, prices=merged_prices(bill.prices, new)), errors


def _is_recent(bill: Bill, run: NodeRun, now: datetime) -> bool:
    has_price = any((run.type, run.zone) == (p.type, p.zone) for p in bill.prices)
    return not has_price or now - Ledger(bill, now, careful=True).end_of(run) < _RECENT


def _spot(ec2: Ec2, bill: Bill, runs: list[NodeRun], now: datetime) -> list[Price]:
    """Return the spot prices that the bill does not have yet, from one request."""
    starts: dict[tuple[str, str], datetime] = {}
    for run in runs:
        key = (run.type, run.zone)
        starts[key] = min(run.start, starts.get(key, run.start))
    for price in bill.prices:  # in order of time
        key = (price.type, price.zone)
        if key in starts and price.time >= starts[key]:
            starts[key] = price.time
    if not starts:
        return []
    types, zones = (sorted({key[i] for key in starts}) for i in (0, 1))
    history = ec2.spot_prices(types, start=min(starts.values()), end=now, zones=zones)
    return [
        Price(type=each.type, zone=each.zone, time=each.time, dollars=each.price)
        for each in history
        if (each.type, each.zone) in starts
    ]
