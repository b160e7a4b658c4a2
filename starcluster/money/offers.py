"""The instance types with GPUs that a region offers, with their prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import inf

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import InstanceType, SpotPrice
from starcluster.errors import AwsError, InputError, did_you_mean
from starcluster.money.generations import generation_of, short_name
from starcluster.money.past_prices import PastPrices, past_prices
from starcluster.money.rates import Rate

_NO_RATES: Mapping[str, Rate] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Prices of one instance type; dollars are None where AWS reported no price.

    Attributes:
        zone: Of the spot prices: the zone where the type is cheapest now, or one of all zones.
        gpus: A fraction for a type with a part of a GPU.
        gpu_memory_gib: Of each GPU.
        generation: Empty if it is unknown.
        on_demand, spot: Dollars per hour now.
        spot_median, spot_p95: The spot price was at most this for 50 and 95 % of the time.
        dollars_per_gpu_hour: At the lower one of ``on_demand`` and ``spot``.
        dollars_per_training: At the same price; None without a rate.
    """

    type: str
    zone: str
    gpus: float
    gpu: str
    gpu_memory_gib: float
    generation: str
    on_demand: float | None = None
    spot: float | None = None
    spot_median: float | None = None
    spot_p95: float | None = None
    dollars_per_gpu_hour: float | None = None
    dollars_per_training: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Offers, cheapest first, and the errors of the prices that are missing."""

    offers: tuple[Offer, ...]
    missing: Mapping[str, AwsError]


def find_offers(
    ec2: Ec2,
    *,
    start: datetime,
    end: datetime,
    gpu: str = "",
    by_zone: bool = False,
    rates: Mapping[str, Rate] = _NO_RATES,
) -> Offers:
    """Return the offers of the region.

    Args:
        start, end: Period of the spot prices.
        gpu: Only types whose GPU has this in its name; empty for all.
        by_zone: One offer for each zone of a type, instead of the cheapest zone.
        rates: Rates by instance type; with them the cheapest training comes first.

    Raises:
        InputError: No type has such a GPU.
        AwsError: AWS does not list the types.
    """
    types = _with_gpu(ec2.types_with_gpus(), gpu, ec2.region)
    names = sorted(types)
    missing: dict[str, AwsError] = {}
    on_demand, error = prices.on_demand_or_error(ec2, names)
    if error is not None:
        missing["on_demand"] = error
    history: list[SpotPrice] = []
    try:
        history = ec2.spot_prices(names, start=start, end=end)
    except AwsError as refused:
        missing["spot"] = refused
    past = past_prices(history, start=start, end=end)
    zones: Mapping[str, Sequence[str]] = ec2.zones_offering(names) if by_zone else {}
    found = [
        _offer(types[name], zone, on_demand.get(name), past.get((name, zone)), rates.get(name))
        for name in names
        for zone in _zones(name, past, zones, by_zone=by_zone)
    ]
    return Offers(offers=tuple(sorted(found, key=_order(rates))), missing=missing)


def _with_gpu(found: Iterable[InstanceType], gpu: str, region: str) -> dict[str, InstanceType]:
    types = {each.name: each for each in found}
    wanted = "".join(gpu.lower().split())
    chosen = {
        name: each
        for name, each in types.items()
        if wanted in "".join(each.gpu_name.lower().split())
    }
    if not chosen:
        known = sorted({short_name(each.gpu_name) for each in types.values()})
        fix = f"GPUs there: {', '.join(known) or 'none'}. Choose another region with -r."
        hint = did_you_mean(gpu, [*known, *(name.lower() for name in known)])
        raise InputError(f"{region} has no type with GPU '{gpu}'", f"{hint} {fix}".strip())
    return chosen


def _zones(
    name: str,
    past: Mapping[tuple[str, str], PastPrices],
    offered: Mapping[str, Sequence[str]],
    *,
    by_zone: bool,
) -> Sequence[str]:
    now: dict[str, float] = defaultdict(lambda: inf)
    now |= {zone: prices.now for (type_, zone), prices in past.items() if type_ == name}
    if by_zone:
        return sorted({*now, *offered.get(name, ())}) or [""]
    return [min(now, key=lambda zone: (now[zone], zone))] if now else [""]


def _offer(
    type_: InstanceType,
    zone: str,
    on_demand: float | None,
    past: PastPrices | None,
    rate: Rate | None,
) -> Offer:
    gpus = type_.gpus * type_.gpu_part
    known = [price for price in (on_demand, past.now if past else None) if price is not None]
    best = min(known, default=None)
    return Offer(
        type=type_.name,
        zone=zone,
        gpus=gpus,
        gpu=short_name(type_.gpu_name),
        gpu_memory_gib=round(type_.gpu_memory_mib / 1024, 1),
        generation=generation_of(type_.gpu_name),
        on_demand=on_demand,
        spot=past.now if past else None,
        spot_median=past.median if past else None,
        spot_p95=past.p95 if past else None,
        dollars_per_gpu_hour=None if best is None else best / gpus,
        dollars_per_training=rate.dollars(best, gpus) if rate and best is not None else None,
    )


def _order(rates: Mapping[str, Rate]) -> Callable[[Offer], tuple[float, float, str, str]]:
    def key(offer: Offer) -> tuple[float, float, str, str]:
        training = offer.dollars_per_training if rates else 0.0
        per_gpu = offer.dollars_per_gpu_hour
        return (
            inf if training is None else training,
            inf if per_gpu is None else per_gpu,
            offer.type,
            offer.zone,
        )

    return key
