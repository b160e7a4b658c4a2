"""Choose the zone of a cluster with spot instances: where AWS probably has them, then by price."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Place, Subnet
from starcluster.errors import AwsError


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotZone:
    """A zone as AWS rates it for spot instances now.

    Attributes:
        score: From 1 to 10, best; 0 if AWS does not tell it.
        dollars: Per hour by instance type.
    """

    name: str
    score: int = 0
    dollars: Mapping[str, float]

    def __str__(self) -> str:
        return f"{self.name}, placement score {self.score} of 10" if self.score else self.name


def best_first(
    ec2: Ec2, types: Sequence[str], fallback: Sequence[str], count: int, zones: Sequence[str]
) -> list[SpotZone]:
    """Return the zones, those with the highest spot placement score first, then the cheapest.

    Args:
        types: Of the spot nodes, one for each node.
        fallback: More types that the launch accepts.
        count: Number of spot nodes.
    """
    wanted = sorted(set(types))
    scores: Mapping[str, int] = {}
    dollars: Mapping[tuple[str, str], float] = {}
    with contextlib.suppress(AwsError):  # many users have no permission; then the price decides
        ids = {zone.name: zone.id for zone in ec2.zones()}
        by_id = ec2.placement_scores(sorted({*wanted, *fallback}), count)
        scores = {name: by_id.get(id, 0) for name, id in ids.items()}
    with contextlib.suppress(AwsError):
        dollars = prices.spot_by_zone(ec2, wanted)
    found = [
        SpotZone(
            name=zone,
            score=scores.get(zone, 0),
            dollars={name: dollars[name, zone] for name in wanted if (name, zone) in dollars},
        )
        for zone in dict.fromkeys(zones)
    ]
    unknown = float("inf")
    return sorted(
        found,
        key=lambda zone: (-zone.score, sum(zone.dollars.get(name, unknown) for name in types)),
    )


def ordered(subnets: Sequence[Subnet], ranked: Sequence[SpotZone]) -> list[Subnet]:
    """Return subnets in the order of their zones, otherwise unchanged."""
    rank = {zone.name: number for number, zone in enumerate(ranked)}
    return sorted(subnets, key=lambda subnet: rank.get(subnet.zone, len(rank)))


def in_turn(places: Sequence[Place]) -> list[tuple[Place, ...]]:
    """Return the places in the first zone, and then all others."""
    first = [place for place in places if place.zone == places[0].zone]
    others = [place for place in places if place.zone != places[0].zone]
    return [tuple(group) for group in (first, others) if group]
