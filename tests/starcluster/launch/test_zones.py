"""Spot nodes are in one zone, the best one now; a message tells when AWS has none there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.cluster.lifecycle import ClusterLifecycle
from starcluster.config import config
from starcluster.errors import AwsError, CapacityError
from starcluster.launch import plan
from starcluster.launch.origin import Origin
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.testbed.hostless import without_hosts

Cheap = dict[tuple[str, str], float]


@pytest.fixture
def scores(front: Front, ec2: Ec2) -> Callable[..., None]:
    """A function that sets the spot placement scores of zones."""
    ids = {zone.name: zone.id for zone in ec2.zones()}

    def told(**by_letter: int) -> None:
        items = "".join(
            f"<item><availabilityZoneId>{ids[f'us-east-1{letter}']}</availabilityZoneId>"
            f"<score>{score}</score></item>"
            for letter, score in by_letter.items()
        )
        front.answers["GetSpotPlacementScores"] = (
            f"<spotPlacementScoreSet>{items}</spotPlacementScoreSet>"
        )

    return told


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices: zone d costs less than c, c less than all others."""

    def by_zone(ec2: Ec2, types: Any) -> Cheap:
        dollars = dict.fromkeys("abcdef", 0.5) | {"c": 0.4, "d": 0.3}
        return {
            (kind, f"us-east-1{zone}"): each for kind in types for zone, each in dollars.items()
        }

    monkeypatch.setattr(prices, "spot_by_zone", by_zone)


@pytest.fixture
def start(
    front: Front, settings: config.Config, client_to: Callable[[str, str], Ec2]
) -> Iterator[Callable[..., tuple[ClusterLifecycle, list[str]]]]:
    """A function that starts cluster c; it returns the cluster and its messages."""

    def started(**more: str) -> tuple[ClusterLifecycle, list[str]]:
        said: list[str] = []
        ec2 = client_to(front.address, "us-east-1")
        given = {"spot_bid": "1", "cluster_size": "4"} | more
        cluster = ClusterLifecycle(
            ec2, settings, "c", progress=lambda alias, what: said.append(what)
        )
        origin = Origin(template="big", overrides=given)
        launcher = cluster.prepare(settings.template("big", given), origin, check=False)
        cluster.create(launcher)
        return cluster, said

    with without_hosts():
        yield started


def zones_of(ec2: Ec2) -> dict[str, str]:
    return {each.alias: each.zone for each in ec2.instances(cluster="c")}


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("letter", ["b", "d", "c"])
def test_the_highest_score_and_then_the_price_decide_where_all_nodes_are(
    front: Front, scores: Callable[..., None], start: Any, letter: str
) -> None:
    # Zone e does not offer t3.micro.
    scores(**({"d": 3, "e": 10, "b": 9} if letter == "b" else {"d": 3, "c": 3, "e": 10}))
    if letter == "c":  # a rejected question leaves the price, and the user overrides both
        front.refusals["GetSpotPlacementScores"] = [("UnauthorizedOperation", "no")]
        cluster, said = start(availability_zone="us-east-1c")
    else:
        cluster, said = start()
    assert set(zones_of(cluster.ec2).values()) == {f"us-east-1{letter}"}
    assert len(zones_of(cluster.ec2)) == 4
    (fleet,) = front.sent("CreateFleet")
    assert fleet["SpotOptions.SingleAvailabilityZone"] == "true"
    assert not [each for each in said if "traffic" in each]


@pytest.mark.usefixtures("cheap")
def test_the_plan_names_the_zone_and_its_price(
    big: Run, front: Front, scores: Callable[..., None]
) -> None:
    scores(b=9)
    done = big("start", "--dry-run", "-b", "1", "-s", "3", "c")
    assert "us-east-1b, placement score 9 of 10" in done.stdout
    assert "$1.50/h" in done.stdout  # 0.50 on demand, and twice the price in the zone
    front.refusals["GetSpotPlacementScores"] = [("UnauthorizedOperation", "no")]
    done = big("start", "--dry-run", "-b", "1", "-s", "3", "c")
    assert "Zone: us-east-1d;" in done.stdout
    assert "$1.10/h" in done.stdout


def lacking(zone: str) -> Callable[[Any], Any]:
    """Return a launch of fleets without spot capacity in a zone."""
    original = Ec2.run_fleet

    def run(self: Ec2, request: Any) -> tuple[Any, list[AwsError]]:
        if {place.zone for place in request.places} == {zone}:
            return [], [CapacityError("none here")]
        return original(self, request)

    return run  # type: ignore[return-value]


@pytest.mark.usefixtures("cheap")
def test_nodes_that_must_leave_the_zone_are_told(
    scores: Callable[..., None], start: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores(b=9)
    cluster, said = start()
    monkeypatch.setattr(Ec2, "run_fleet", lacking("us-east-1b"))
    template = cluster.config.template("big", {"spot_bid": "1"})
    cluster.add(plan.more_nodes(template, ["node004", "node005"]), template)
    zones = zones_of(cluster.ec2)
    (other,) = {zones["node004"], zones["node005"]}
    assert other != "us-east-1b"
    (told,) = [each for each in said if "traffic" in each]
    assert told.startswith(f"2 of the new nodes are in {other}, the cluster is in us-east-1b")
    strict = cluster.config.template("big", {"spot_bid": "1", "availability_zone": "us-east-1b"})
    cluster.add(plan.more_nodes(strict, ["node006"]), strict)
    (node,) = (each for each in cluster.ec2.instances(cluster="c") if each.alias == "node006")
    assert (node.zone, node.is_spot) == ("us-east-1b", False)
