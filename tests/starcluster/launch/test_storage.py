"""File systems and buckets: what is checked before a launch, and where nodes are launched."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.filesystems import FileSystem
from starcluster.aws.model import Image, Subnet
from starcluster.config import NodeType, Template, Volume, config
from starcluster.config.sections import Key
from starcluster.errors import ConfigError
from starcluster.launch import plan
from starcluster.launch.preflight import aws_problems, fetch
from starcluster.launch.storage import (
    StorageInventory,
    located,
    ports_for_servers,
    reachable,
    storage_problems,
)
from starcluster.launch.survey import gather

SUBNETS = [
    Subnet(
        id=f"subnet-{zone}",
        vpc_id="vpc-1",
        zone=zone,
        free_addresses=9,
        public_ips=True,
        cidr=f"172.31.{16 * number}.0/20",
    )
    for number, zone in enumerate(("a", "b"))
]
EFS = FileSystem(
    id="fs-1", kind="EFS", vpc="vpc-1", zones=("a",), group_ids=("sg-1",), cidrs=("172.31.0.0/20",)
)
LUSTRE = replace(EFS, id="fs-2", kind="LUSTRE", zones=("b",), source="dns@tcp:/abc")
KNOWN = StorageInventory(
    file_systems={"fs-1": EFS, "fs-2": LUSTRE},
    access_points={"fsap-1": ("fs-1", ""), "fsap-2": ("fs-9", "")},
    vpc="vpc-1",
    subnets=SUBNETS,
    clients={"fs-1": ["172.31.0.0/16"], "fs-2": ["@sc-other"]},
)
UBUNTU = Image(id="ami-1", name="ubuntu", state="", architecture="", root_device="")


def template(*volumes: Volume, **keys: Any) -> Template:
    return Template(
        name="t",
        key=Key(name="k", location=Path("k")),
        keyname="k",
        cluster_size=2,
        node_instance_type=(NodeType(instance_type="t3.micro"),),
        volumes=volumes,
        **keys,
    )


def volume(**keys: Any) -> Volume:
    return Volume(name="data", mount_path="/data", **keys)


SHARED, FAST, SET = volume(efs_id="fs-1"), volume(fsx_id="fs-2"), volume(bucket="set")


def problems(given: Template, known: StorageInventory, image: Image = UBUNTU) -> list[str]:
    found = list(storage_problems(given, known, [image], ["a", "b"]))
    assert {key for key, _ in found} <= {"volumes"}
    assert all(text.startswith("data: ") for _, text in found)
    return [text for _, text in found]


def test_storage_that_nodes_can_reach_has_no_problem() -> None:
    point = replace(SHARED, access_point="fsap-1")
    assert problems(template(SHARED, FAST, point), KNOWN) == []


@pytest.mark.parametrize(
    ("wanted", "changes", "fact"),
    [
        (SHARED, {"file_systems": {}}, "no EFS file system fs-1"),
        (SHARED, {"file_systems": {"fs-1": replace(EFS, state="creating")}}, "creating"),
        (
            SHARED,
            {"file_systems": {"fs-1": replace(EFS, vpc="", zones=())}},
            "create-mount-target --file-system-id fs-1 --subnet-id subnet-a",
        ),
        (SHARED, {"file_systems": {"fs-1": replace(EFS, zones=("c",))}}, " c, .* a, b.*create"),
        (SHARED, {"file_systems": {"fs-1": replace(EFS, vpc="vpc-2")}}, "vpc-2.* vpc-1"),
        (SHARED, {"names": False}, "--vpc-id vpc-1 --enable-dns-hostnames"),
        (
            SHARED,
            {"clients": {"fs-1": ["default", "10.0.0.0/8", "172.31.0.0/24"]}},
            r"--group-id sg-1 .*--port 2049 --cidr 172\.31\.0\.0/20",
        ),
        (FAST, {"clients": {"fs-2": []}}, "--port 988 "),
        (FAST, {"file_systems": {"fs-2": replace(LUSTRE, kind="WINDOWS")}}, "WINDOWS"),
        (replace(SHARED, access_point="fsap-2"), {}, "fsap-2 is of fs-9"),
        (replace(SHARED, access_point="fsap-3"), {}, "fsap-3 is missing"),
        (SET, {}, "no bucket set"),
    ],
)
def test_each_obstacle_is_named_with_its_fix(
    wanted: Volume, changes: dict[str, Any], fact: str
) -> None:
    given = template(wanted, instance_profile="role")
    (text,) = problems(given, replace(KNOWN, **changes))
    assert re.search(fact, text), text


def test_lustre_is_refused_on_debian_before_the_launch() -> None:
    debian = replace(UBUNTU, name="debian-12-amd64-20260101-1")
    (text,) = problems(template(FAST), KNOWN, debian)
    assert "Debian" in text
    assert "ami-1" in text
    assert problems(template(SHARED), KNOWN, debian) == []


def test_nodes_start_only_where_a_mount_target_is_and_near_lustre() -> None:
    assert reachable(template(SHARED), KNOWN, SUBNETS) == SUBNETS[:1]
    assert reachable(template(FAST), KNOWN, SUBNETS) == SUBNETS[::-1]
    assert reachable(template(FAST, availability_zone=("a", "b")), KNOWN, SUBNETS) == SUBNETS
    with pytest.raises(ConfigError, match=r"fs-1 .* b\n") as caught:
        reachable(template(SHARED), KNOWN, SUBNETS[1:])
    assert "create-mount-target" in caught.value.fix


def test_the_servers_of_lustre_can_connect_to_the_nodes() -> None:
    ports = ports_for_servers(template(SHARED, FAST), KNOWN)
    assert [(port.from_port, port.to_port) for port in ports] == [(988, 988), (1018, 1023)]
    assert {port.cidr_ip for port in ports} == {"172.31.0.0/20"}


def made(ec2: Ec2, zone: str) -> dict[str, str]:
    """Create storage in the account; return the ids by config key."""
    (subnet,) = ec2.subnets(vpc=ec2.default_vpc(), zones=[zone])
    efs = ec2.call("efs", "CreateFileSystem", CreationToken="x")["FileSystemId"]
    group = ec2.create_security_group("efs", vpc=subnet.vpc_id, description="d")
    ec2.call(
        "efs",
        "CreateMountTarget",
        FileSystemId=efs,
        SubnetId=subnet.id,
        SecurityGroups=[group],
    )
    fsx = ec2.call(
        "fsx",
        "CreateFileSystem",
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=[subnet.id],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )
    ec2.call("s3", "CreateBucket", Bucket="data-set")
    return {"efs_id": efs, "fsx_id": fsx["FileSystem"]["FileSystemId"], "bucket": "data-set"}


def test_against_moto_from_the_check_to_what_is_mounted(
    ec2: Ec2, settings: config.Config, tmp_path: Path
) -> None:
    ids = made(ec2, "us-east-1b")
    names = ", ".join(ids)
    text = (tmp_path / "config").read_text()
    text = text.replace("[cluster big]\n", f"[cluster big]\nvolumes = {names}\n")
    text += "".join(
        f"[volume {key}]\n{key} = {id}\nmount_path = /{key}\n" for key, id in ids.items()
    )
    (tmp_path / "config").write_text(text)
    found = config.load(tmp_path / "config", {}).template("big")
    inventory = fetch(ec2, found)
    (closed, role) = [text for _, text in aws_problems(found, inventory)]
    assert re.search(r"^efs_id: .*--group-id (sg-\w+) ", closed)
    assert "instance_profile" in role
    group = inventory.storage.file_systems[ids["efs_id"]].group_ids[0]
    rule = {"IpProtocol": "tcp", "FromPort": 2000, "ToPort": 3000}
    rules = [{**rule, "IpRanges": [{"CidrIp": "172.31.0.0/16"}]}]
    ec2.call("ec2", "AuthorizeSecurityGroupIngress", GroupId=group, IpPermissions=rules)
    found = replace(found, instance_profile="role")
    inventory = fetch(ec2, found)
    assert [key for key, _ in aws_problems(found, inventory)] == ["instance_profile"]
    context = gather(ec2, found, plan.whole_cluster(found), inventory)
    assert {subnet.zone for subnet in context.subnets} == {"us-east-1b"}
    assert {port.from_port for port in context.ports} == {988, 1018}
    sources = {volume.name: volume.source for volume in located(ec2, found).volumes}
    assert sources["efs_id"] == f"{ids['efs_id']}.efs.us-east-1.amazonaws.com"
    lustre = f"{ids['fsx_id']}.fsx.us-east-1.amazonaws.com@tcp:/"
    assert sources["fsx_id"].startswith(lustre)


def test_what_does_not_exist_is_named(ec2: Ec2, settings: config.Config) -> None:
    given = replace(
        settings.template("big"),
        volumes=(
            volume(efs_id="fs-00000001", access_point="fsap-00000001"),
            volume(fsx_id="fs-00000002"),
            volume(bucket="no-such-bucket-of-mine"),
        ),
        instance_profile="role",
    )
    storage = fetch(ec2, given).storage
    texts = problems(given, storage)
    for text, id in zip(texts, ("fs-00000001", "fs-00000002", "no-such-bucket"), strict=True):
        assert id in text
