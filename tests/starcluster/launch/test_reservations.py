"""``capacity_reservation``: which nodes run in it, its checks, and what a Capacity Block costs."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from starcluster.aws import responses
from starcluster.aws.model import Place
from starcluster.aws.reservations import Reservation
from starcluster.cluster.costs import cost_of
from starcluster.config import config
from starcluster.errors import ConfigError
from starcluster.launch import plan
from starcluster.launch.reserved import Reserved, problems
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front
from tests.testbed.hostless import without_hosts

ID = "cr-0123456789abcdef0"
NOW = datetime.now(UTC)
TYPE = "p5.48xlarge"
START = ("start", "-i", TYPE, "-I", "t3.micro", "-s", "3", "--capacity-reservation")


def listed(**changes: object) -> str:
    """Return the XML of one reservation, by default a Capacity Block of four p5.48xlarge."""
    values: dict[str, object] = {
        "capacityReservationId": ID,
        "instanceType": TYPE,
        "instancePlatform": "Linux/UNIX",
        "availabilityZone": "us-east-1b",
        "tenancy": "default",
        "totalInstanceCount": 4,
        "availableInstanceCount": 2,
        "state": "active",
        "reservationType": "capacity-block",
        "startDate": f"{NOW - timedelta(hours=1):%Y-%m-%dT%H:%M:%S.000Z}",
        "endDate": f"{NOW + timedelta(hours=26):%Y-%m-%dT%H:%M:%S.000Z}",
    }
    values |= changes
    return "<item>" + "".join(f"<{key}>{v}</{key}>" for key, v in values.items()) + "</item>"


def answer(front: Front, *items: str) -> None:
    """Let EC2 list reservations."""
    text = f"<capacityReservationSet>{''.join(items)}</capacityReservationSet>"
    front.answers["DescribeCapacityReservations"] = text


def test_nodes_of_a_capacity_block_are_paid_count_for_no_quota_and_end_early(
    big: Run, front: Front
) -> None:
    answer(front, listed())
    front.hourly[TYPE] = 55.0
    front.quota = 8.0  # of vCPUs; the nodes have 192 each
    done = big(*START, ID, "--dry-run", "c")
    assert done.returncode == 0, done.stderr
    clear = NOW + timedelta(hours=25, minutes=30)
    for fact in ("2 x p5.48xlarge reserved", "$0.50/h", f"{clear:%Y-%m-%d %H:%M} UTC", "2 of 4"):
        assert fact in done.stdout
    assert " P on-demand" not in done.stdout
    done = big(*START, ID, "-o", "c")
    assert done.returncode == 0, done.stderr
    master, nodes = (form for form in front.sent("RunInstances") if "DryRun" not in form)
    assert "InstanceMarketOptions.MarketType" not in master
    assert not [key for key in master if key.startswith("CapacityReservation")]
    assert nodes["MaxCount"] == "2"
    assert nodes["InstanceMarketOptions.MarketType"] == "capacity-block"
    target = "CapacityReservationSpecification.CapacityReservationTarget"
    assert nodes[f"{target}.CapacityReservationId"] == ID
    done = big("listclusters", "--json", "c")
    assert {node["zone"] for node in json.loads(done.stdout)[0]["nodes"]} == {"us-east-1b"}


def test_addnode_takes_a_block_of_its_own(big: Run, front: Front) -> None:
    answer(front, listed())
    with without_hosts():
        assert big("start", "-s", "1", "c").returncode == 0
        done = big("addnode", "-I", TYPE, "-n", "2", "--capacity-reservation", ID, "c")
        assert done.returncode == 0, done.stderr
    assert f"Capacity Block {ID}: 2 of 4" in done.stdout
    assert "2 of the new nodes are in us-east-1b" in done.stderr
    node = front.sent("RunInstances")[-1]
    assert node["InstanceMarketOptions.MarketType"] == "capacity-block"


@pytest.mark.parametrize(
    ("changes", "facts"),
    [
        ({"availableInstanceCount": 1}, ["1 of its 4", "2 nodes"]),
        ({"state": "expired"}, ["expired"]),
        (
            {"state": "scheduled", "startDate": "2099-01-01T11:30:00.000Z"},
            ["2099-01-01 11:30 UTC"],
        ),
        ({"instanceType": "p4d.24xlarge"}, ["p4d.24xlarge", "t3.micro, p5.48xlarge"]),
        ({"availabilityZone": "us-west-2a"}, ["us-west-2a"]),
        ({"tenancy": "dedicated"}, ["dedicated"]),
        ({"instancePlatform": "Windows"}, ["Windows"]),
        (
            {"endDate": f"{NOW + timedelta(minutes=29):%Y-%m-%dT%H:%M:%S.000Z}"},
            ["terminates its nodes already"],
        ),
    ],
)
def test_a_reservation_that_cannot_take_the_nodes_now_is_refused(
    big: Run, front: Front, changes: dict[str, object], facts: list[str]
) -> None:
    answer(front, listed(**changes))
    done = big(*START, ID, "c")
    assert done.returncode == 2
    assert f"capacity_reservation: {ID}" in done.stderr
    for fact in facts:
        assert fact in done.stderr
    assert front.sent("CreateSecurityGroup") == []


def test_a_group_is_read_and_what_does_not_fit_runs_on_demand(big: Run, front: Front) -> None:
    arn = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
    front.paths["/list-group-resources"] = {"ResourceIdentifiers": []}
    done = big(*START, arn, "--dry-run", "c")
    assert (done.returncode, f"no capacity reservation in {arn}" in done.stderr) == (2, True)
    item = {
        "ResourceArn": f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{ID}",
        "ResourceType": "AWS::EC2::CapacityReservation",
    }
    front.paths["/list-group-resources"] = {"ResourceIdentifiers": [item]}
    answer(front, listed())
    done = big(*START, arn, "--dry-run", "c")
    assert (done.returncode, f"{ID} is a Capacity Block" in done.stderr) == (2, True)
    answer(front, listed(reservationType="default", availableInstanceCount=1))
    front.quota = 999.0
    front.hourly[TYPE] = 55.0
    done = big(*START, arn, "--dry-run", "c")
    assert done.returncode == 0, done.stderr
    assert "1 x p5.48xlarge do not fit" in done.stdout
    assert "$110.50/h" in done.stdout  # an unused reservation costs as much
    target = "CapacityReservationSpecification.CapacityReservationTarget"
    form = front.sent("RunInstances")[-1]
    assert form[f"{target}.CapacityReservationResourceGroupArn"] == arn
    assert "InstanceMarketOptions.MarketType" not in form


def test_open_and_none_are_for_all_nodes(big: Run, front: Front) -> None:
    for value in ("open", "none"):
        front.asked.clear()
        assert big("start", "-o", "--capacity-reservation", value, f"c-{value}").returncode == 0
        key = "CapacityReservationSpecification.CapacityReservationPreference"
        assert {form[key] for form in front.sent("RunInstances")} == {value}


@pytest.mark.parametrize(
    ("more", "fact"),
    [
        ({"spot_bid": "1"}, "spot_bid"),
        ({"placement_group": "true"}, "placement_group"),
        ({"capacity_reservation": "cr-x"}, "cr-"),
        ({"capacity_reservation": "yes"}, "open or none"),
    ],
)
def test_what_no_reservation_can_do_is_wrong_in_the_config(
    settings: config.Config, more: dict[str, str], fact: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        settings.template("big", {"capacity_reservation": ID} | more)
    (problem,) = caught.value.problems
    assert fact in problem


def test_instances_of_a_block_add_no_cost_and_others_do() -> None:
    answer = {"InstanceId": "i-1", "InstanceType": TYPE, "State": {"Name": "running"}}
    answer |= {"LaunchTime": NOW - timedelta(hours=2)}  # type: ignore[dict-item]
    block = responses.instance(answer | {"InstanceLifecycle": "capacity-block"})
    other = responses.instance(answer)
    prices = {TYPE: 55.0}
    assert plan.cost_of([block, other], prices).dollars == 55.0
    assert plan.cost_of([block], {}).unknown == ()
    found = [cost_of(each, NOW, prices, ()).dollars_so_far for each in (block, other)]
    assert found == [0.0, 110.0]


def test_only_types_of_the_reservation_and_its_zones_are_places(settings: config.Config) -> None:
    reservation = Reservation(id=ID, type=TYPE, zone="a", state="active", total=2, left=2)
    reserved = Reserved(reference=ID, found=(reservation,))
    template = settings.template("big", {"capacity_reservation": ID})
    assert reserved.target("t3.micro", spot=False) == ""
    assert reserved.target(TYPE, spot=True) == ""
    assert reserved.prepaid == set()
    (text,) = problems(template, reserved, ["a"], NOW)
    assert re.search(f"{TYPE}.*t3.micro", text)
    where = [
        Place(instance_type=kind, zone=zone) for kind in (TYPE, "t3.micro") for zone in ("a", "b")
    ]
    assert reserved.usable(where, TYPE) == (where[0],)
    assert reserved.usable(where, "t3.micro") == tuple(where)
