"""Past spot prices of one type in one zone, weighted by time; no I/O."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from starcluster.aws.model import SpotPrice


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPrices:
    """Spot prices in dollars per hour.

    Attributes:
        median, p95: The price was at most this for 50 and 95 % of the time.
    """

    now: float
    median: float
    p95: float


def past_prices(
    history: Iterable[SpotPrice], *, start: datetime, end: datetime
) -> dict[tuple[str, str], PastPrices]:
    """Return the prices between ``start`` and ``end`` by type and zone."""
    steps: Mapping[tuple[str, str], list[SpotPrice]] = defaultdict(list)
    for price in sorted(history, key=lambda price: price.time):
        steps[price.type, price.zone].append(price)
    return {key: _of_steps(found, start, end) for key, found in steps.items()}


def _of_steps(steps: Sequence[SpotPrice], start: datetime, end: datetime) -> PastPrices:
    times = [max(step.time, start) for step in steps] + [end]
    held = [
        (step.price, max((until - since).total_seconds(), 0.0))
        for step, (since, until) in zip(steps, pairwise(times), strict=True)
    ]
    return PastPrices(
        now=steps[-1].price, median=weighted_quantile(held, 0.5), p95=weighted_quantile(held, 0.95)
    )


def weighted_quantile(values: Sequence[tuple[float, float]], part: float) -> float:
    """Return the least value that ``part`` of the weight does not exceed.

    Args:
        values: At least one value, each with its weight. Without any weight all count the same.
        part: From 0 to 1.
    """
    weighs = any(weight > 0 for _, weight in values)
    ordered = sorted((value, weight if weighs else 1.0) for value, weight in values)
    wanted = part * sum(weight for _, weight in ordered) * (1 - 1e-12)
    passed = 0.0
    for value, weight in ordered:
        passed += weight
        if weight and passed >= wanted:
            return value
    return ordered[-1][0]
