"""Problems of a template in AWS, all reported in one run with the lines of the config."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume, Image, InstanceType, LaunchRequest, Place, Subnet
from starcluster.aws.responses import image
from starcluster.commands._checks import checked
from starcluster.config import config
from starcluster.config.parsers import NodeType
from starcluster.config.sections import Key
from starcluster.config.template import Template
from starcluster.config.volume import Volume
from starcluster.errors import ConfigError
from starcluster.launch import plan
from starcluster.launch.preflight import AwsInventory, aws_problems, fetch
from starcluster.launch.survey import gather
from starcluster.model import TAG_CLUSTER

FACTS = AwsInventory(
    region="us-east-1",
    types={
        "g5.xlarge": InstanceType(
            name="g5.xlarge", vcpus=4, memory_mib=16384, architecture="x86_64"
        ),
        "g5g.xlarge": InstanceType(
            name="g5g.xlarge",
            vcpus=4,
            memory_mib=8192,
            architecture="arm64",
            spot=False,
            placement_group=False,
        ),
    },
    offers={"g5.xlarge": ["us-east-1a", "us-east-1b"], "g5g.xlarge": ["us-east-1c"]},
    zones=["us-east-1a", "us-east-1b", "us-east-1c"],
    images={
        "ami-1": Image(
            id="ami-1",
            name="x",
            state="available",
            architecture="x86_64",
            root_device="/dev/sda1",
            root_size_gib=45,
        )
    },
    volumes={
        "vol-1": EbsVolume(
            id="vol-1",
            state="available",
            size_gib=9,
            zone="us-east-1a",
            type="gp3",
            encrypted=True,
        ),
        "vol-2": EbsVolume(
            id="vol-2",
            state="in-use",
            size_gib=9,
            zone="us-east-1b",
            type="gp3",
            encrypted=True,
            instance_id="i-1",
        ),
    },
    subnets={
        "subnet-1": Subnet(
            id="subnet-1", vpc_id="vpc-1", zone="us-east-1a", free_addresses=2, public_ips=True
        ),
        "subnet-2": Subnet(
            id="subnet-2", vpc_id="vpc-2", zone="us-east-1b", free_addresses=9, public_ips=True
        ),
    },
    keys={"mykey": ""},
    meant={"g5.xlrage": "Did you mean 'g5.xlarge'?"},
)
GOOD = Template(
    name="gpu",
    key=Key(name="mykey", location=Path("k")),
    keyname="mykey",
    cluster_size=3,
    node_instance_type=(NodeType(instance_type="g5.xlarge"),),
    node_image_id="ami-1",
)


def volume(name: str) -> Volume:
    return Volume(name=name, volume_id=f"vol-{name}", mount_path=f"/{name}")


def types(*names: str) -> tuple[NodeType, ...]:
    counts = [1] * (len(names) - 1) + [None]
    return tuple(
        NodeType(instance_type=name, count=count) for name, count in zip(names, counts, strict=True)
    )


def test_a_template_that_aws_can_do_has_no_problem() -> None:
    facts = replace(FACTS, subnets={})
    assert list(aws_problems(GOOD, facts)) == []
    assert list(aws_problems(replace(GOOD, volumes=(volume("1"),)), facts)) == []
    assert list(aws_problems(replace(GOOD, availability_zone=("us-east-1b",)), facts)) == []


@pytest.mark.parametrize(
    ("changes", "key", "facts"),
    [
        ({"keyname": "mykex"}, "keyname", "'mykex'.*'mykey'"),
        ({"keyname": "zzz"}, "keyname", "starcluster createkey zzz"),
        (
            {"node_instance_type": types("g5.xlrage", "g5.xlarge")},
            "node_instance_type",
            r"'g5\.xlrage'.*'g5\.xlarge'",
        ),
        (
            {"fallback_instance_types": ("p9.large",)},
            "fallback_instance_types",
            r"us-east-1.*'p9\.large'",
        ),
        (
            {"master_instance_type": "p9.large"},
            "master_instance_type",
            r"us-east-1.*'p9\.large'",
        ),
        (
            {"availability_zone": ("us-east-1c",)},
            "node_instance_type",
            r"g5\.xlarge.*us-east-1c.*us-east-1a, us-east-1b",
        ),
        ({"availability_zone": ("us-east-1z",)}, "availability_zone", "'us-east-1z'"),
        (
            {"node_instance_type": types("g5g.xlarge", "g5.xlarge")},
            "node_image_id",
            r"ami-1.*x86_64.*g5g\.xlarge.*arm64",
        ),
        (
            {"fallback_instance_types": ("g5g.xlarge",), "placement_group": True},
            "placement_group",
            r"g5g\.xlarge",
        ),
        (
            {"fallback_instance_types": ("g5g.xlarge",), "spot_bid": 1.0},
            "spot_bid",
            r"g5g\.xlarge",
        ),
        ({"node_image_id": "ami-9"}, "node_image_id", "'ami-9'"),
        ({"master_image_id": "ami-9"}, "master_image_id", "'ami-9'"),
        ({"root_volume_size": 44}, "root_volume_size", "44 GiB.*ami-1.*45 GiB"),
        ({"volumes": (volume("9"),)}, "volumes", "^9: .*vol-9"),
        ({"volumes": (volume("2"),)}, "volumes", "vol-2.*i-1"),
        (
            {"volumes": (volume("1"),), "availability_zone": ("us-east-1b",)},
            "volumes",
            "vol-1.*us-east-1a.*us-east-1b",
        ),
    ],
)
def test_what_aws_lacks_is_told_by_key(changes: dict[str, object], key: str, facts: str) -> None:
    template = replace(GOOD, **changes)  # type: ignore[arg-type]
    found = list(aws_problems(template, replace(FACTS, subnets={})))
    assert [key for key, _ in found] == [key]
    assert re.search(facts, found[0][1])


def test_subnets_and_volumes_that_do_not_fit_together() -> None:
    template = replace(GOOD, subnet_id=("subnet-1", "subnet-2", "subnet-3"), cluster_size=12)
    problems = [text for key, text in aws_problems(template, FACTS) if key == "subnet_id"]
    for facts, text in zip(("subnet-3", r"\b11\b.*\b12\b", "VPC"), problems, strict=True):
        assert re.search(facts, text)
    template = replace(GOOD, volumes=(volume("1"), volume("2")))
    problems = [text for key, text in aws_problems(template, FACTS) if key == "volumes"]
    assert problems[-1].endswith(": us-east-1a, us-east-1b")


CONFIG = """\
[key mykey]
key_location = ~/mykey.pem
[cluster gpu]
keyname = mykey
cluster_size = 2
node_instance_type = t3.micr
node_image_id = ami-785db401
volumes = data
[volume data]
volume_id = vol-0123abcd
mount_path = /data
"""


def test_two_hundred_nodes_are_few_requests(ec2: Ec2, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of requests grows with pages, not with nodes."""
    place = Place(instance_type="t3.micro")
    tags = {TAG_CLUSTER: "big"}
    for _ in range(4):
        ec2.run(LaunchRequest(image_id="ami-785db401", count=50, places=(place,), tags=tags))
    asked: list[str] = []
    ask = Ec2._do

    def counted(door: Ec2, client: object, operation: str, call: object) -> object:
        asked.append(operation)
        return ask(door, client, operation, call)

    monkeypatch.setattr(Ec2, "_do", counted)
    assert len(ec2.instances(cluster="big")) == 200
    # The second call is the end of the pages and sends no request.
    assert asked == ["DescribeInstances"] * 2
    asked.clear()
    fetch(ec2, replace(GOOD, cluster_size=200, node_image_id="ami-785db401"))
    assert len(asked) <= 8


def test_an_image_of_windows_is_refused(ec2: Ec2) -> None:
    named = "ami-12c6146b"  # Windows Server 2008 in moto
    template = replace(GOOD, node_instance_type=types("t3.micro"), node_image_id=named)
    found = [text for key, text in aws_problems(template, fetch(ec2, template)) if "ami" in text]
    (text,) = found
    assert re.search(r"ami-12c6146b.*Windows.*listimages --stock", text)
    sql = {"ImageId": "ami-2", "PlatformDetails": "Windows with SQL Server Web"}
    linux = {"ImageId": "ami-3", "PlatformDetails": "Red Hat Enterprise Linux"}
    assert [image(each).windows for each in (sql, linux)] == [True, False]


def test_against_moto_at_the_lines_of_the_config(
    ec2: Ec2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in (("config", CONFIG), ("mykey.pem", "")):
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_text(text)
    made = config.load(tmp_path / "config", {})
    template = made.template("gpu")
    error = made.refusal("gpu", aws_problems(template, fetch(ec2, template)))
    expected = (
        ("~/config:4: keyname: ", "starcluster createkey mykey"),
        ("~/config:6: node_instance_type: ", "'t3.micro'"),
        ("~/config:8: volumes: data: ", "vol-0123abcd"),
    )
    for problem, (place, fact) in zip(error.problems, expected, strict=True):
        assert problem.startswith(place)
        assert fact in problem
    ec2.create_key_pair("mykey")
    options = {"node_instance_type": "t3.micro", "volumes": ""}
    template = made.template("gpu", options)
    assert list(aws_problems(template, fetch(ec2, template))) == []


def test_what_was_looked_at_is_not_asked_again(
    ec2: Ec2, settings: config.Config, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prices, "on_demand", lambda *_: {})
    volume = ec2.create_volume(size_gib=1, zone="us-east-1a")
    (subnet,) = (subnet.id for subnet in ec2.subnets(zones=["us-east-1a"]))
    template = replace(
        settings.template("big"),
        subnet_id=(subnet,),
        volumes=(Volume(name="d", volume_id=volume.id, mount_path="/d"),),
    )
    nodes = plan.whole_cluster(template)
    alone = gather(ec2, template, nodes)
    inventory = fetch(ec2, template)
    assert list(aws_problems(template, inventory)) == []
    calls.clear()
    assert gather(ec2, template, nodes, inventory) == alone
    assert set(calls) == {"DescribeRouteTables"}


def test_a_key_that_would_open_no_node_is_refused_before_the_launch(
    ec2: Ec2, settings: config.Config
) -> None:
    template = settings.template("big")
    app: Any = SimpleNamespace(ec2=ec2, config=settings)
    assert checked(app, template, {}).keys["big"].startswith("ssh-ed25519 ")
    key = template.key.location
    argv = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", str(key)]
    subprocess.run(argv, check=True, capture_output=True)
    with pytest.raises(ConfigError, match=f"{key}.*passphrase"):
        checked(app, template, {})
    key.unlink()
    _, other = ec2.create_key_pair("other")
    key.write_text(other)
    key.chmod(0o600)
    with pytest.raises(ConfigError, match=r"keyname: .*/key .*'big' .*us-east-1"):
        checked(app, template, {})
