"""Whether the nodes of a subnet reach package servers, by the real route tables of moto."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.config import config
from starcluster.errors import ConfigError
from starcluster.launch import plan, survey
from starcluster.launch.survey import gather
from tests.starcluster.conftest import Run
from tests.starcluster.front import Front

ANY, ANY6 = "0.0.0.0/0", "::/0"
NAT, IGW = "nat", "igw"


class Account:
    """A new VPC with a subnet; its route tables get routes."""

    def __init__(self, ec2: Ec2) -> None:
        self.ec2 = ec2
        self.vpc = self._made("CreateVpc", "Vpc", "VpcId", CidrBlock="10.0.0.0/16")
        self.subnet = self._made(
            "CreateSubnet",
            "Subnet",
            "SubnetId",
            VpcId=self.vpc,
            CidrBlock="10.0.0.0/24",
            AvailabilityZone="us-east-1a",  # offers all types
        )

    def _made(self, action: str, key: str, id: str, **arguments: Any) -> str:
        return str(self.ec2.call("ec2", action, **arguments)[key][id])

    @property
    def main(self) -> str:
        found = self.ec2.route_tables(self.vpc).main
        assert found is not None
        return found.id

    def table_of_subnet(self) -> str:
        table = self._made("CreateRouteTable", "RouteTable", "RouteTableId", VpcId=self.vpc)
        self.ec2.call("ec2", "AssociateRouteTable", RouteTableId=table, SubnetId=self.subnet)
        return table

    def route(self, table: str, kind: str, to: str = ANY) -> str:
        """Add a route; return the id of its target."""
        target = getattr(self, f"_{kind}")()
        key = {IGW: "GatewayId", NAT: "NatGatewayId", "tgw": "TransitGatewayId"}.get(kind)
        where = "DestinationIpv6CidrBlock" if ":" in to else "DestinationCidrBlock"
        more = {where: to, key or "EgressOnlyInternetGatewayId": target}
        self.ec2.call("ec2", "CreateRoute", RouteTableId=table, **more)
        return str(target)

    def _igw(self) -> str:
        gateway = self._made("CreateInternetGateway", "InternetGateway", "InternetGatewayId")
        arguments = {"InternetGatewayId": gateway, "VpcId": self.vpc}
        self.ec2.call("ec2", "AttachInternetGateway", **arguments)
        return gateway

    def _nat(self) -> str:
        address = self.ec2.call("ec2", "AllocateAddress", Domain="vpc")["AllocationId"]
        arguments = {"SubnetId": self.subnet, "AllocationId": address}
        return self._made("CreateNatGateway", "NatGateway", "NatGatewayId", **arguments)

    def _tgw(self) -> str:
        return self._made("CreateTransitGateway", "TransitGateway", "TransitGatewayId")

    def _eigw(self) -> str:
        key = "EgressOnlyInternetGateway"
        return self._made(f"Create{key}", key, f"{key}Id", VpcId=self.vpc)


Launch = Callable[..., survey.LaunchContext]


@pytest.fixture
def account(ec2: Ec2, monkeypatch: pytest.MonkeyPatch) -> Account:
    monkeypatch.setattr(prices, "on_demand", lambda *_: {})
    return Account(ec2)


@pytest.fixture
def launch(account: Account, settings: config.Config) -> Launch:
    """A function that asks AWS what a launch needs."""

    def gathered(*, own_image: bool = False, **keys: Any) -> survey.LaunchContext:
        given = {"subnet_id": (account.subnet,), "public_ips": False} | keys
        template = replace(settings.template("big"), **given)
        nodes = plan.whole_cluster(template)
        inventory = None
        if own_image:
            found = account.ec2.image(template.node_image_id)
            images = {template.node_image_id: replace(found, public=False)}
            inventory = SimpleNamespace(
                images=images, subnets={each.id: each for each in subnets()}, offers={},
                storage=survey.fetch_storage(account.ec2, template), reserved=None, types={},
                volumes={},
            )  # fmt: skip
        return gather(account.ec2, template, nodes, inventory)  # type: ignore[arg-type]

    def subnets() -> list[Any]:
        return account.ec2.subnets([account.subnet])

    return gathered


@pytest.mark.parametrize(
    ("kind", "to", "public", "refused"),
    [
        (NAT, ANY, False, ""),
        ("tgw", ANY, False, ""),
        (NAT, "0.0.0.0/1", False, ""),
        (IGW, ANY, True, ""),
        (IGW, ANY, False, "--nat-gateway-id"),
        (NAT, ANY, True, "--gateway-id"),
        (NAT, "10.9.0.0/16", False, "--nat-gateway-id"),
        ("eigw", ANY6, False, "--nat-gateway-id"),
        ("", ANY, False, "--nat-gateway-id"),
        ("", ANY, True, "--gateway-id"),
    ],
)
@pytest.mark.parametrize("explicit", [False, True])
def test_nodes_need_a_gateway_that_they_can_use(
    account: Account, launch: Launch, kind: str, to: str, public: bool, refused: str, explicit: bool
) -> None:
    table = account.table_of_subnet() if explicit else account.main
    if kind:
        account.route(table, kind, to)
    if not refused:
        assert [each.id for each in launch(public_ips=public).subnets] == [account.subnet]
        return
    with pytest.raises(ConfigError, match=f"{account.subnet}.*{table}") as caught:
        launch(public_ips=public)
    assert f"create-route --region us-east-1 --route-table-id {table} " in caught.value.fix
    assert f" {refused} " in caught.value.fix


def test_the_table_of_the_subnet_counts_and_not_the_main_one(
    account: Account, launch: Launch
) -> None:
    account.route(account.main, NAT)
    launch()
    table = account.table_of_subnet()
    with pytest.raises(ConfigError, match=table):
        launch()
    account.route(table, NAT)
    launch()


def test_ipv6_is_a_way_out_where_nodes_get_such_an_address(
    account: Account, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.route(account.main, "eigw", ANY6)
    (subnet,) = account.ec2.subnets([account.subnet])
    monkeypatch.setattr(Ec2, "subnets", lambda *_, **__: [replace(subnet, ipv6=True)])
    assert launch().subnets[0].ipv6


def test_public_addresses_behind_a_nat_gateway_suffice_where_ssh_comes_from_inside(
    account: Account, launch: Launch
) -> None:
    account.route(account.main, NAT)
    jump = {"ssh_proxy_jump": "a@b", "ssh_from": ("10.0.0.5/32",)}
    launch(public_ips=True, **jump)
    with pytest.raises(ConfigError, match="public addresses"):
        launch(public_ips=True)


def test_images_and_scripts_of_the_user_can_bring_the_packages(
    account: Account, launch: Launch, caplog: pytest.LogCaptureFixture
) -> None:
    launch(own_image=True)
    launch(userdata_scripts=("x",))
    assert caplog.text.count(f"--route-table-id {account.main}") == 2


def test_other_subnets_are_used_and_the_one_without_a_route_is_named(
    account: Account, launch: Launch, caplog: pytest.LogCaptureFixture
) -> None:
    account.route(account.main, NAT)
    other = account._made(
        "CreateSubnet",
        "Subnet",
        "SubnetId",
        VpcId=account.vpc,
        CidrBlock="10.0.1.0/24",
        AvailabilityZone="us-east-1a",
    )
    table = account.table_of_subnet()
    context = launch(subnet_id=(account.subnet, other))
    assert [each.id for each in context.subnets] == [other]
    assert f"{account.subnet}: its route table {table}" in caplog.text


LOST = """<routeTableSet><item><routeTableId>rtb-1</routeTableId><routeSet><item>
<destinationCidrBlock>0.0.0.0/0</destinationCidrBlock><natGatewayId>nat-7</natGatewayId>
<state>blackhole</state><origin>CreateRoute</origin></item></routeSet><associationSet><item>
<routeTableAssociationId>a</routeTableAssociationId><routeTableId>rtb-1</routeTableId>
<main>true</main></item></associationSet></item></routeTableSet>"""


def test_a_route_to_a_deleted_gateway_is_refused_before_anything_is_made(
    account: Account, big: Run, front: Front
) -> None:
    front.answers["DescribeRouteTables"] = LOST
    words = ("start", "-c", "big", "-N", account.subnet, "--no-public-ips", "c")
    done = big(*words)
    assert done.returncode == 2, done.stderr
    assert "nat-7" in done.stderr
    assert "aws ec2 replace-route --region us-east-1 --route-table-id rtb-1 " in done.stderr
    assert not front.sent("CreateSecurityGroup") + front.sent("RunInstances")


def test_who_may_not_see_route_tables_can_launch(account: Account, big: Run, front: Front) -> None:
    text = "You are not authorized to perform: ec2:DescribeRouteTables"
    front.refusals["DescribeRouteTables"] = [("UnauthorizedOperation", text)]
    words = ("start", "--dry-run", "-c", "big", "-N", account.subnet, "--no-public-ips", "c")
    done = big(*words)
    assert done.returncode == 0, done.stderr
    assert "ec2:DescribeRouteTables" in done.stderr
