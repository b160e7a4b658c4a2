"""Route tables: where a subnet sends traffic for the internet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from starcluster.aws.client import AwsClient
from starcluster.aws.instances import as_filters

_TARGETS = (
    "NatGatewayId", "TransitGatewayId", "InstanceId", "NetworkInterfaceId", "LocalGatewayId",
    "CarrierGatewayId", "CoreNetworkArn", "EgressOnlyInternetGatewayId", "VpcPeeringConnectionId",
    "GatewayId",
)  # fmt: skip
# Halves of the internet are as good as a default route: 0.0.0.0/1 and 128.0.0.0/1.
_WIDE = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route to the internet.

    Attributes:
        target: Id of what gets the traffic; empty if AWS does not name it.
        ipv6: Whether it is for IPv6.
        lost: Whether its target no longer exists (a blackhole).
    """

    target: str
    ipv6: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTable:
    """A route table with its routes to the internet; ``main`` is whether the VPC names it so."""

    id: str
    main: bool = False
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteTables:
    """The route tables of a VPC; ``by_subnet`` has those with an explicit association."""

    main: RouteTable | None = None
    by_subnet: Mapping[str, RouteTable] = field(default_factory=dict)

    def of(self, subnet_id: str) -> RouteTable | None:
        """Return the table of a subnet; None if AWS does not name one."""
        return self.by_subnet.get(subnet_id, self.main)


class Routes(AwsClient):
    """Requests about route tables; none of them changes anything."""

    def route_tables(self, vpc: str) -> RouteTables:
        """Return the route tables of a VPC."""
        filters = as_filters({"vpc-id": [vpc]})
        main: RouteTable | None = None
        by_subnet: dict[str, RouteTable] = {}
        for item in self.pages("ec2", "DescribeRouteTables", "RouteTables", Filters=filters):
            linked = item.get("Associations", ())
            table = RouteTable(
                id=item["RouteTableId"],
                main=any(each.get("Main") for each in linked),
                routes=tuple(_route(row) for row in item.get("Routes", ()) if _is_wide(row)),
            )
            main = table if table.main else main
            by_subnet |= {each["SubnetId"]: table for each in linked if each.get("SubnetId")}
        return RouteTables(main=main, by_subnet=by_subnet)


def _is_wide(row: Mapping[str, Any]) -> bool:
    """Return whether a route is for the internet; prefix lists of users can be."""
    if row.get("DestinationPrefixListId"):  # those of AWS lead to its own services
        return not str(row.get("GatewayId", "")).startswith("vpce-")
    block = str(row.get("DestinationCidrBlock") or row.get("DestinationIpv6CidrBlock") or "")
    return bool(block) and ip_network(block, strict=False).prefixlen <= _WIDE


def _route(row: Mapping[str, Any]) -> Route:
    return Route(
        target=next((str(row[key]) for key in _TARGETS if row.get(key)), ""),
        ipv6="DestinationIpv6CidrBlock" in row,
        lost=row.get("State") == "blackhole",
    )
