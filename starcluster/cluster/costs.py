"""What the nodes of a cluster cost per hour and have cost since AWS started them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, SpotPrice
from starcluster.launch.survey import PRICES_S
from starcluster.threadpool import soon

BILLED = ("pending", "running")
_LEAST_S = 60.0  # AWS bills at least a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCost:
    """Cost of one instance without its disks; None for a price that AWS did not report.

    Attributes:
        age_s: Seconds since AWS last started it; None if it does not run.
        dollars_so_far: Since AWS last started it; None if it does not run.
    """

    dollars_per_hour: float | None
    age_s: float | None = None
    dollars_so_far: float | None = None


def costs_now(ec2: Ec2, instances: Sequence[Instance], now: datetime) -> dict[str, NodeCost]:
    """Return the cost of each instance by id; waits up to ``PRICES_S`` for each price list."""
    running = [each for each in instances if each.state in BILLED and not each.prepaid]
    spot = [instance for instance in running if instance.is_spot]
    types = {instance.type for instance in running if not instance.is_spot}
    unknown: dict[str, float] = {}
    no_history: list[SpotPrice] = []
    on_demand = soon(lambda: prices.on_demand(ec2, types), within_s=PRICES_S, otherwise=unknown)
    history = soon(lambda: _history(ec2, spot, now), within_s=PRICES_S, otherwise=no_history)
    return {instance.id: cost_of(instance, now, on_demand, history) for instance in instances}


def _history(ec2: Ec2, spot: Sequence[Instance], now: datetime) -> list[SpotPrice]:
    starts = [instance.launched for instance in spot if instance.launched]
    if not starts:
        return []
    types = sorted({instance.type for instance in spot})
    zones = sorted({instance.zone for instance in spot})
    return ec2.spot_prices(types, start=min(starts), end=now, zones=zones)


def cost_of(
    instance: Instance,
    now: datetime,
    on_demand: Mapping[str, float],
    history: Iterable[SpotPrice],
) -> NodeCost:
    """Return the cost of an instance; one in a Capacity Block, paid in advance, costs nothing.

    Args:
        on_demand: Dollars per hour by type.
        history: Spot prices in order of time, also of other types and zones.
    """
    if instance.state not in BILLED:
        return NodeCost(dollars_per_hour=0.0)
    age_s = max((now - instance.launched).total_seconds(), 0.0) if instance.launched else None
    if instance.prepaid:
        return NodeCost(dollars_per_hour=0.0, age_s=age_s, dollars_so_far=0.0)
    if instance.is_spot:
        return _spot_cost(instance, now, age_s, history)
    price = on_demand.get(instance.type)
    so_far = None if price is None or age_s is None else price * max(age_s, _LEAST_S) / 3600
    return NodeCost(dollars_per_hour=price, age_s=age_s, dollars_so_far=so_far)


def _spot_cost(
    instance: Instance, now: datetime, age_s: float | None, history: Iterable[SpotPrice]
) -> NodeCost:
    """Return the cost at the spot prices of its zone, each in force until the next."""
    steps = [p for p in history if (p.type, p.zone) == (instance.type, instance.zone)]
    if not steps:
        return NodeCost(dollars_per_hour=None, age_s=age_s)
    so_far = None
    if instance.launched and steps[0].time <= instance.launched:
        ends = [*(step.time for step in steps[1:]), now]
        so_far = sum(
            step.price * max((end - max(step.time, instance.launched)).total_seconds(), 0) / 3600
            for step, end in zip(steps, ends, strict=True)
        )
    return NodeCost(dollars_per_hour=steps[-1].price, age_s=age_s, dollars_so_far=so_far)


def total_per_hour(costs: Iterable[NodeCost]) -> float | None:
    """Return dollars per hour of all nodes; None if the price of one is unknown."""
    return _sum(cost.dollars_per_hour for cost in costs)


def total_so_far(costs: Iterable[NodeCost]) -> float | None:
    """Return dollars so far of the nodes that run; None if the price of one is unknown."""
    return _sum(
        cost.dollars_so_far for cost in costs if cost.age_s is not None or cost.dollars_so_far
    )


def _sum(dollars: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in dollars:
        if value is None:
            return None
        total += value
    return total
