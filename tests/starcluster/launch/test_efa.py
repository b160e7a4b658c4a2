"""``efa``: the interfaces of each type, the launch of its nodes, and the report of a node."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import InstanceType, Interface
from starcluster.launch.efa import interfaces
from starcluster.setup import efa
from starcluster.setup.scripts import script
from starcluster.testing import FakeNode, FakeShell
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front

GROUP = "CreatePlacementGroup"


def kind(efa: int, *cards: tuple[str, ...]) -> InstanceType:
    return InstanceType(
        name="x",
        vcpus=1,
        memory_mib=1,
        architecture="x86_64",
        efa=efa,
        cards=dict(enumerate(cards)),
    )


def test_each_card_has_one_interface_with_the_indexes_that_aws_requires(ec2: Ec2) -> None:
    facts = ec2.instance_types(["p5.48xlarge", "p4d.24xlarge", "g6.8xlarge", "t3.micro"])
    found = {name: interfaces(facts[name]) for name in facts}
    assert {name: len(each) for name, each in found.items()} == {
        "p5.48xlarge": 32,
        "p4d.24xlarge": 4,
        "g6.8xlarge": 1,
        "t3.micro": 0,
    }
    for each in found.values():
        assert [card.card for card in each] == list(range(len(each)))
        assert [card.device for card in each] == [0, *[1] * 40][: len(each)]
        assert [card.type for card in each] == ["efa", *["efa-only"] * 40][: len(each)]


def test_the_interfaces_follow_what_the_cards_support() -> None:
    old = ("interface", "efa")
    assert [card.type for card in interfaces(kind(4, old, old))] == ["efa", "efa"]
    assert interfaces(kind(1)) == (Interface(card=0, device=0, type="efa"),)
    only = ("efa-only",)
    first = kind(2, ("interface",), only, only, only)  # no EFA on the card of the address
    assert [card.type for card in interfaces(first)] == ["interface", "efa-only", "efa-only"]
    few = kind(2, old, old, old)
    assert len(interfaces(few)) == 2


def behind_nat(ec2: Ec2) -> None:
    """Give the default VPC a route to a NAT gateway, not to its internet gateway."""
    vpc = ec2.default_vpc()
    main = ec2.route_tables(vpc).main
    assert main is not None
    address = ec2.call("ec2", "AllocateAddress", Domain="vpc")["AllocationId"]
    subnet = ec2.subnets(vpc=vpc)[0].id
    made = ec2.call("ec2", "CreateNatGateway", SubnetId=subnet, AllocationId=address)
    nat = made["NatGateway"]["NatGatewayId"]
    where = {"RouteTableId": main.id, "DestinationCidrBlock": "0.0.0.0/0"}
    ec2.call("ec2", "ReplaceRoute", NatGatewayId=nat, **where)


def test_nodes_have_their_interfaces_close_together_and_a_group_open_to_itself(
    ec2: Ec2, big: Run, front: Front
) -> None:
    behind_nat(ec2)
    front.answers[GROUP] = ""
    front.quota = 999
    words = ("start", "-o", "--efa", "auto", "-i", "p4d.24xlarge", "-I", "t3.micro")
    done = big(*words, "--no-public-ips", "c")
    assert done.returncode == 0, done.stderr
    assert "1 efa, 3 efa-only" in done.stdout
    assert "p4d.24xlarge may have no public address" in done.stdout
    master, node = (form for form in front.sent("RunInstances") if "DryRun" not in form)
    assert "Placement.GroupName" not in master
    assert "NetworkInterface.1.InterfaceType" not in master
    assert node["Placement.GroupName"] == "@sc-c"
    assert "SubnetId" not in node
    assert not [key for key in node if key.endswith("AssociatePublicIpAddress")]
    for number, (device, name) in enumerate([("0", "efa"), *[("1", "efa-only")] * 3]):
        start = f"NetworkInterface.{number + 1}."
        assert node[f"{start}NetworkCardIndex"] == str(number)
        assert (node[f"{start}DeviceIndex"], node[f"{start}InterfaceType"]) == (device, name)
        assert node[f"{start}SubnetId"] == master.get(
            "SubnetId", master.get("NetworkInterface.1.SubnetId")
        )
        assert node[f"{start}SecurityGroupId.1"].startswith("sg-")
    (out,) = front.sent("AuthorizeSecurityGroupEgress")
    assert out["IpPermissions.1.Groups.1.GroupId"] == out["GroupId"]
    dry = [form for form in front.sent("RunInstances") if "DryRun" in form]
    assert [form.get("NetworkInterface.4.InterfaceType") for form in dry] == [None, "efa-only"]


def test_spot_nodes_are_launched_type_by_type(big: Run, front: Front, ec2: Ec2) -> None:
    behind_nat(ec2)
    front.answers[GROUP] = ""
    words = (
        "start",
        "-o",
        "-V",
        "--efa",
        "true",
        "-i",
        "p4d.24xlarge",
        "-I",
        "t3.micro",
        "-b",
        "9",
        "--no-public-ips",
    )
    assert big(*words, "c").returncode == 0
    assert front.sent("CreateFleet") == []
    node = front.sent("RunInstances")[-1]
    assert node["InstanceMarketOptions.MarketType"] == "spot"
    assert node["NetworkInterface.4.InterfaceType"] == "efa-only"
    assert sorted(each.alias for each in ec2.instances(cluster="c")) == ["master", "node001"]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--efa", "true"), ["efa: t3.micro", "network-info.efa-supported"]),
        (
            ("--efa", "auto", "-i", "p4d.24xlarge", "--public-ips"),
            ["public_ips: p4d.24xlarge", "4"],
        ),
        (("--efa", "maybe"), ["efa = maybe", "true, auto or false"]),
    ],
)
def test_what_cannot_be_is_refused_before_the_launch(
    big: Run, front: Front, words: tuple[str, ...], facts: list[str]
) -> None:
    done = big("start", *words, "c")
    assert done.returncode == 2
    for fact in facts:
        assert fact in done.stderr
    assert front.sent("CreateSecurityGroup") == []


@pytest.mark.parametrize(
    ("devices", "fi_info", "facts"),
    [
        (0, "true", ("", "")),
        (2, "true", ("2 devices", "")),
        (1, "true", ("", "1 of 2 devices")),
        (2, "false", ("", "fi_info -p efa fails")),
        (2, "", ("", "no fi_info")),
    ],
)
def test_a_node_reports_what_its_efa_lacks(
    tmp_path: Path, devices: int, fi_info: str, facts: tuple[str, str]
) -> None:
    for number in range(2 if devices else 0):
        device = tmp_path / f"sys/bus/pci/devices/{number}"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x1d0f\n")
        (device / "device").write_text("0xefa2\n")
    (tmp_path / "dev").mkdir()
    for number in range(devices):
        (tmp_path / f"dev/uverbs{number}").touch()

    def run(shell: FakeShell, argv: list[str], stdin: str) -> tuple[int, str]:
        values = {"SYS": str(tmp_path / "sys"), "DEVICES": str(tmp_path / "dev")}
        text = script("efa", values)
        assert re.sub("(?m)^(SYS|DEVICES)=.*", "", stdin) == re.sub(
            "(?m)^(SYS|DEVICES)=.*", "", text
        )
        text = text.replace("/run/systemd/system", str(tmp_path / "none"))  # not of this machine
        program = f"fi_info() {{ {fi_info}; }}\n" if fi_info else ""
        argv = ["/bin/sh", "-s"]
        done = subprocess.run(
            argv, input=program + text, capture_output=True, text=True, check=True
        )
        return done.returncode, done.stdout

    report, problem = efa.check(FakeNode(shell=FakeShell(name="node001", programs={"sh": run})))
    assert facts[0] in report
    assert facts[1] in problem
    assert (bool(report), bool(problem)) == (bool(facts[0]), bool(facts[1]))
