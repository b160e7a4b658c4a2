"""The effect of the options of cluster commands."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.cluster.cluster import Cluster
from starcluster.commands._checks import checked
from starcluster.commands.resize import aliases_to_remove, names_of_new, only_nodes, template_of_new
from starcluster.commands.start import overrides_of
from starcluster.config import config, schema
from starcluster.errors import ConfigError, InputError
from starcluster.launch import plan
from starcluster.launch.origin import Origin
from starcluster.model import TAG_ALIAS, TAG_CLUSTER
from tests.starcluster.conftest import IMAGE


def cluster(*aliases: str) -> Cluster:
    instances = [
        Instance(
            id=f"i-{number}",
            state="running",
            type="g5.xlarge",
            image_id="ami-1",
            zone="z",
            tags={TAG_CLUSTER: "gpu", TAG_ALIAS: alias},
        )
        for number, alias in enumerate(aliases)
    ]
    nothing: Any = None
    return Cluster("gpu", instances, nothing, config.load(environment={"HOME": str(Path())}))


def test_only_what_was_given_overrides_the_template() -> None:
    options: dict[str, Any] = dict.fromkeys(key.name for key in schema.start_options())
    assert overrides_of(options) == {}
    options |= {"cluster_size": "3", "dns_prefix": False, "public_ips": True}
    assert overrides_of(options) == {
        "cluster_size": "3",
        "dns_prefix": "false",
        "public_ips": "true",
    }


def test_the_last_nodes_leave_unless_others_are_named_and_never_the_master() -> None:
    three = cluster("node002", "master", "node001", "node003")
    assert three.instances[0].alias == "master"
    assert aliases_to_remove(three, None, None) == ["node003"]
    assert aliases_to_remove(three, None, 2) == ["node002", "node003"]
    assert aliases_to_remove(three, " node001 ,node003", None) == ["node001", "node003"]
    for aliases, count, fact in (
        ("master", None, "starcluster terminate gpu"),
        ("node009", None, "node009(?s:.*)node001, node002, node003"),
        (None, 4, r"gpu .*\b3 "),
    ):
        with pytest.raises(InputError, match=fact):
            aliases_to_remove(three, aliases, count)


def test_new_nodes_have_the_next_names_or_those_given() -> None:
    two = cluster("master", "node001")
    assert names_of_new(two, None, None, new=True) == ["node002"]
    assert names_of_new(two, "a,b", None, new=True) == ["a", "b"]
    assert names_of_new(cluster("gpu-master", "gpu-node004"), None, 1, new=True) == ["node005"]
    for aliases, count, new, fact in (
        ("a,b", 3, True, r"-a .*\b2\b.*-n .*\b3\b"),
        ("node001", None, True, "node001"),
        ("node009", None, False, "node009"),
        (None, None, False, "-x -a node"),
    ):
        with pytest.raises(InputError, match=fact):
            names_of_new(two, aliases, count, new=new)


def test_new_nodes_are_made_of_what_was_asked_and_need_nothing_of_the_masters(
    ec2: Ec2, settings: config.Config
) -> None:
    overrides = {
        "node_instance_type": "t3.small:1, t3.micro:ami-9",
        "master_image_id": "ami-gone",
        "subnet_id": "subnet-9",
    }
    master = cluster("master")
    master.config = settings
    master.origin = Origin(template="big", overrides=overrides)
    template, _ = template_of_new(master)
    (node,) = plan.more_nodes(template, ["node002"])
    assert (node.instance_type, node.image_id, node.spot) == ("t3.micro", "ami-9", False)
    template, given = template_of_new(
        master, node_image_id=IMAGE, availability_zone="us-east-1b", spot_bid="0.2"
    )
    (node,) = plan.more_nodes(template, ["node002"])
    assert (node.instance_type, node.image_id, node.spot) == ("t3.micro", IMAGE, True)
    assert (template.availability_zone, template.subnet_id) == (("us-east-1b",), ())
    app: Any = SimpleNamespace(ec2=ec2, config=settings)
    assert checked(app, only_nodes(template, 1), given).images
    template, given = template_of_new(master, node_instance_type="t3.micr", node_image_id=IMAGE)
    with pytest.raises(ConfigError, match=r"command line: node_instance_type: .* 't3.micro'"):
        checked(app, only_nodes(template, 1), given)
