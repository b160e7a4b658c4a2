"""The plan of a cluster: aliases, types, places, prices and tags."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from starcluster.aws.model import Subnet
from starcluster.config.parsers import NodeType
from starcluster.config.sections import Key
from starcluster.config.template import Template
from starcluster.errors import InputError
from starcluster.launch import plan
from starcluster.launch.origin import Origin, origin_of, origin_tags

TEMPLATE = Template(
    name="gpu",
    key=Key(name="k", location=Path("k.pem")),
    keyname="k",
    cluster_size=4,
    node_instance_type=(
        NodeType(instance_type="p5.48xlarge", count=1),
        NodeType(instance_type="g5.xlarge", image_id="ami-2"),
    ),
    node_image_id="ami-1",
)


def test_the_master_comes_first_and_is_on_demand_unless_forced() -> None:
    template = replace(TEMPLATE, spot_bid=0.5, master_instance_type="m5.large")
    nodes = plan.whole_cluster(template)
    assert [node.alias for node in nodes] == ["master", "node001", "node002", "node003"]
    assert [node.instance_type for node in nodes] == [
        "m5.large",
        "p5.48xlarge",
        "g5.xlarge",
        "g5.xlarge",
    ]
    assert [node.image_id for node in nodes] == ["ami-2", "ami-1", "ami-2", "ami-2"]
    assert [node.spot for node in nodes] == [False, True, True, True]
    assert plan.whole_cluster(replace(template, force_spot_master=True))[0].spot


def test_more_nodes_are_like_the_last() -> None:
    (node,) = plan.more_nodes(TEMPLATE, ["node009"])
    assert (node.instance_type, node.image_id) == ("g5.xlarge", "ami-2")


@pytest.mark.parametrize(
    ("taken", "count", "free"),
    [
        ((), 2, ["node001", "node002"]),
        (("master", "node001", "node007", "gpu"), 2, ["node008", "node009"]),
        (("node999",), 1, ["node1000"]),
    ],
)
def test_new_aliases_follow_the_last(taken: tuple[str, ...], count: int, free: list[str]) -> None:
    assert plan.free_aliases(taken, count) == free


def test_nodes_that_are_alike_are_launched_by_one_request() -> None:
    groups = plan.batches(plan.whole_cluster(TEMPLATE))
    assert [[node.alias for node in group] for group in groups] == [
        ["master", "node002", "node003"],
        ["node001"],
    ]


def test_a_spot_node_costs_the_spot_price_and_an_unknown_price_is_told() -> None:
    nodes = plan.whole_cluster(replace(TEMPLATE, spot_bid=1.0))
    cost = plan.cost(nodes, {"p5.48xlarge": 50.0, "g5.xlarge": 1.0}, {"g5.xlarge": 0.25})
    assert str(cost) == "$51.50/h"
    partly = plan.cost(nodes, {"g5.xlarge": 1.0}, {})
    assert str(partly).startswith("$3.00/h")
    assert "p5.48xlarge" in str(partly)
    assert "$" not in str(plan.cost(nodes, {}, {}))


@pytest.mark.parametrize(
    ("limit", "cost", "refused"),
    [
        (None, plan.Cost(dollars=99.0, unknown=("p9.large",)), ""),
        (2.0, plan.Cost(dollars=2.0), ""),
        (2.0, plan.Cost(dollars=2.01), r"\$2\.01/h.*max_hourly_cost = \$2\.00"),
        (2.0, plan.Cost(dollars=0.0, unknown=("p9.large",)), r"\$2\.00.*p9\.large"),
    ],
)
def test_the_cap_refuses_more_and_what_has_no_price(
    limit: float | None, cost: plan.Cost, refused: str
) -> None:
    template = replace(TEMPLATE, max_hourly_cost=limit)
    if not refused:
        plan.check_cost(template, cost)
        return
    with pytest.raises(InputError, match=refused):
        plan.check_cost(template, cost)


def subnet(name: str, zone: str, free: int = 100) -> Subnet:
    return Subnet(id=name, vpc_id="vpc", zone=zone, free_addresses=free, public_ips=True)


def test_subnets_come_in_the_templates_order() -> None:
    found = [subnet("b", "z2"), subnet("a", "z1"), subnet("big", "z2", 900)]
    ids = [subnet.id for subnet in plan.ordered_subnets(TEMPLATE, found)]
    assert ids == ["a", "big", "b"]
    zones = replace(TEMPLATE, availability_zone=("z2",))
    assert [subnet.id for subnet in plan.ordered_subnets(zones, found)] == ["big", "b"]
    named = replace(TEMPLATE, subnet_id=("b", "a"))
    assert [subnet.id for subnet in plan.ordered_subnets(named, found[:2])] == ["b", "a"]


def test_the_wanted_type_is_tried_everywhere_before_another_one() -> None:
    template = replace(TEMPLATE, fallback_instance_types=("g6.xlarge",))
    subnets = [subnet("a", "z1"), subnet("b", "z2")]
    offers = {"g5.xlarge": ["z1", "z2"], "g6.xlarge": ["z2"]}
    found = plan.places(template, "g5.xlarge", subnets, offers)
    assert [(place.instance_type, place.subnet_id) for place in found] == [
        ("g5.xlarge", "a"),
        ("g5.xlarge", "b"),
        ("g6.xlarge", "b"),
    ]


@pytest.mark.parametrize("text", ["", "x" * 200, 'quotes " and \\ ' * 60])
def test_the_origin_survives_tags_of_limited_length(text: str) -> None:
    origin = Origin(template="gpu", overrides={"userdata_scripts": text} if text else {})
    tags = origin_tags(origin)
    assert all(len(value) <= 256 for value in tags.values())
    assert origin_of({"Name": "x", **tags}) == origin


def test_tags_of_another_program_tell_no_origin() -> None:
    assert origin_of({"Name": "x"}) is None
    assert origin_of({"starcluster:template": "gpu"}) is None


@pytest.mark.parametrize(
    ("kind", "spot", "code"),
    [
        ("g5.xlarge", False, "L-DB2E81BA"),
        ("p5.48xlarge", True, "L-7212CCBC"),
        ("m5.large", False, "L-1216C47A"),
        ("trn1.2xlarge", False, None),
    ],
)
def test_each_family_counts_for_its_quota(kind: str, spot: bool, code: str | None) -> None:
    found = plan.quota_of(kind, spot=spot)
    assert (found[0] if found else None) == code


@pytest.mark.parametrize(
    "name", ["", "*", "gpu*", "a?", "../x", "a/b", "-x", ".", "a" * 101, "a b"]
)
def test_a_name_that_aws_or_a_path_would_read_otherwise_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"'{name}'")):
        plan.check_name(name)


@pytest.mark.parametrize("name", ["gpucluster", "gpu-2.1_x", "9"])
def test_a_name_of_letters_and_digits_is_taken(name: str) -> None:
    plan.check_name(name)
