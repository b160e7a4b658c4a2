"""listclusters: prices, ages, dollars so far, zones and all regions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance, LaunchRequest, Place, SpotPrice
from starcluster.aws.regions import ask_regions
from starcluster.cluster.costs import NodeCost, cost_of, total_per_hour, total_so_far
from starcluster.errors import CredentialsError
from starcluster.model import TAG_ALIAS, TAG_CLUSTER
from tests.starcluster.conftest import IMAGE, Run
from tests.starcluster.front import Front

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def instance(hours: float, *, state: str = "running", spot: bool = False) -> Instance:
    return Instance(
        id="i-1",
        state=state,
        type="g5.xlarge",
        image_id="ami-1",
        zone="us-east-1a",
        is_spot=spot,
        launched=NOW - timedelta(hours=hours),
    )


def price(dollars: float, hours_ago: float, zone: str = "us-east-1a") -> SpotPrice:
    time = NOW - timedelta(hours=hours_ago)
    return SpotPrice(type="g5.xlarge", zone=zone, price=dollars, time=time)


def launch(ec2: Ec2, cluster: str, *aliases: str) -> list[Instance]:
    made = []
    for alias in aliases:
        tags = {TAG_CLUSTER: cluster, TAG_ALIAS: alias}
        places = (Place(instance_type="t3.micro"),)
        made += ec2.run(LaunchRequest(image_id=IMAGE, count=1, places=places, tags=tags))
    return made


def regions_named(*names: str) -> str:
    """Return the answer of EC2 with these regions."""
    items = "".join(f"<item><regionName>{name}</regionName></item>" for name in names)
    return f"<regionInfo>{items}</regionInfo>"


def test_a_node_on_demand_costs_its_price_since_its_start() -> None:
    found = cost_of(instance(3), NOW, {"g5.xlarge": 1.5}, [])
    assert found == NodeCost(dollars_per_hour=1.5, age_s=10800, dollars_so_far=4.5)
    unknown = cost_of(instance(3), NOW, {"g5.2xlarge": 1.5}, [])
    assert (unknown.dollars_per_hour, unknown.dollars_so_far) == (None, None)
    assert cost_of(instance(3, state="stopped"), NOW, {}, []) == NodeCost(dollars_per_hour=0.0)


def test_a_spot_node_costs_the_prices_of_its_zone_each_until_the_next() -> None:
    history = [price(0.1, 30), price(9, 2, "us-east-1b"), price(0.4, 1)]
    found = cost_of(instance(3, spot=True), NOW, {"g5.xlarge": 1.5}, history)
    assert found.dollars_per_hour == 0.4
    assert found.dollars_so_far == pytest.approx(2 * 0.1 + 1 * 0.4)
    late = cost_of(instance(3, spot=True), NOW, {"g5.xlarge": 1.5}, history[1:])
    assert (late.dollars_per_hour, late.dollars_so_far) == (0.4, None)
    other = cost_of(instance(3, spot=True), NOW, {"g5.xlarge": 1.5}, history[1:2])
    assert (other.dollars_per_hour, other.dollars_so_far) == (None, None)


def test_a_sum_is_unknown_if_one_price_is() -> None:
    known = NodeCost(dollars_per_hour=1.0, age_s=3600, dollars_so_far=1.0)
    stopped, unknown = NodeCost(dollars_per_hour=0.0), NodeCost(dollars_per_hour=None, age_s=60)
    assert (total_per_hour([known, stopped]), total_so_far([known, stopped])) == (1.0, 1.0)
    assert (total_per_hour([known, unknown]), total_so_far([known, unknown])) == (None, None)


def test_a_region_that_stays_silent_is_named_and_the_others_answer() -> None:
    over = threading.Event()

    def ask(name: str) -> str:
        if name == "silent":
            over.wait()
        if name == "closed":
            raise CredentialsError("not for this account")
        return name.upper()

    answers, errors = ask_regions(["a", "closed", "silent", "b"], ask, within_s=5)
    over.set()
    assert answers == {"a": "A", "b": "B"}
    assert errors["closed"] == "not for this account"
    assert sorted(errors) == ["closed", "silent"]


def test_clusters_are_listed_with_dollars_and_the_zone_of_each_node(
    big: Run, ec2: Ec2, front: Front
) -> None:
    master, node = launch(ec2, "c", "master", "node001")
    ec2.stop([node.id])
    done = big("listclusters")
    assert done.returncode == 0, done.stderr
    assert "  $0.50 per hour, $0.0" in done.stdout
    rows = [line.split() for line in done.stdout.splitlines()[3:]]
    assert rows[0][:5] == ["master", "running", "t3.micro", master.zone, master.id]
    assert "$0.50" in rows[0]
    assert "$0.00" in rows[1]
    (found,) = json.loads(big("lc", "--json").stdout)
    assert (found["region"], found["dollars_per_hour"]) == ("us-east-1", 0.5)
    first, second = found["nodes"]
    assert (first["zone"], first["dollars_per_hour"]) == (master.zone, 0.5)
    assert (second["age_s"], second["dollars_so_far"]) == (None, None)
    front.hourly = {}
    assert "  unknown per hour, unknown so far" in big("listclusters", "c").stdout


def test_the_clusters_of_all_regions_are_listed_and_a_closed_region_is_named(
    big: Run, aws: str, front: Front, client_to: Callable[[str, str], Ec2]
) -> None:
    launch(client_to(aws, "us-east-1"), "here", "master")
    launch(client_to(aws, "eu-west-1"), "there", "master")
    # moto makes the images and networks of a region at its first request. All of its regions took
    # 20 s, nearly as long as listclusters waits.
    front.answers["DescribeRegions"] = regions_named("eu-west-1", "eu-west-2", "us-east-1")
    done = big("listclusters", "--all-regions")
    assert done.returncode == 0, done.stderr
    assert "there: running, 1 node in eu-west-1, " in done.stdout
    assert "here: running, 1 node in us-east-1, " in done.stdout
    front.closed = {"eu-west-1", "eu-west-2"}
    done = big("lc", "-A", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert [cluster["name"] for cluster in found["clusters"]] == ["here"]
    assert [each["region"] for each in found["unanswered"]] == ["eu-west-1", "eu-west-2"]
    assert "eu-west-1 did not answer" in done.stderr
