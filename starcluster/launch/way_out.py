"""Check before a launch that nodes can reach package servers, and be reached where it is public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Image, InstanceType, Subnet
from starcluster.aws.routes import RouteTable, RouteTables
from starcluster.config.template import Template
from starcluster.errors import AwsError, ConfigError
from starcluster.launch import efa
from starcluster.launch.plan import Planned
from starcluster.logger import log

_ROUTE = "aws ec2 {verb}-route --region {region} --route-table-id {table}"
_ANY = "--destination-cidr-block 0.0.0.0/0"


def tables_of(ec2: Ec2, vpc: str) -> RouteTables | None:
    """Return the route tables of a VPC; None without the permission to see them."""
    try:
        return ec2.route_tables(vpc)
    except AwsError as error:
        log.warning("not checked whether nodes reach package servers: %s", error.what)
        return None


def with_way_out(
    region: str,
    template: Template,
    nodes: Sequence[Planned],
    subnets: Sequence[Subnet],
    tables: RouteTables | None,
    images: Iterable[Image],
    efa_types: Mapping[str, InstanceType],
) -> list[Subnet]:
    """Return the subnets from which nodes reach the internet; all without ``tables``.

    A public image lacks packages that the setup installs. The user's own images and scripts can
    bring them, or a mirror inside of the network: then a subnet without a route is only a warning.

    Args:
        images: Those that the nodes boot.
        efa_types: Types whose nodes get EFA; with several network cards they have no public
            address.

    Raises:
        ConfigError: No subnet has a route.
    """
    if tables is None:
        return list(subnets)
    problems = {}
    for subnet in subnets:
        ask = {_is_public(template, node, subnet, efa_types) for node in nodes}
        found = [_problem(region, template, subnet, tables.of(subnet.id), each) for each in ask]
        if refusals := [each for each in found if each is not None]:
            problems[subnet.id] = refusals[0]
    left = [subnet for subnet in subnets if subnet.id not in problems]
    own = bool(template.userdata_scripts) or not any(image.public for image in images)
    if not left and problems and not own:
        raise ConfigError(*next(iter(problems.values())))
    for what, fix in problems.values():
        log.warning("%s%s. %s", "not used: " if left else "", what, fix)
    return left or list(subnets)


def _is_public(
    template: Template, node: Planned, subnet: Subnet, efa_types: Mapping[str, InstanceType]
) -> bool:
    if len(efa.interfaces(efa_types.get(node.instance_type))) > 1:
        return False
    return subnet.public_ips if template.public_ips is None else template.public_ips


def _problem(
    region: str, template: Template, subnet: Subnet, table: RouteTable | None, public: bool
) -> tuple[str, str] | None:
    """Return what prevents nodes of a subnet from reaching the internet, and the fix."""
    if table is None:
        return None
    usable = [route for route in table.routes if subnet.ipv6 or not route.ipv6]
    targets = [route.target for route in usable if not route.lost]
    inside = bool(template.ssh_via or template.ssh_proxy_jump)
    gateways = [target for target in targets if target.startswith(("igw-", "vpce-"))]
    if gateways if public and not inside else targets if public else _beyond(targets):
        return None
    kind = "main route table" if table.main else "route table"
    where = f"subnet {subnet.id}: its {kind} {table.id}"
    lost = [route.target for route in usable if route.lost]
    command = _ROUTE.format(verb="replace" if lost else "create", region=region, table=table.id)
    if lost:
        why = f"{where} has a route to the internet whose target is gone ({', '.join(lost)})"
    elif public and targets:
        why = f"{where} has no internet gateway, so the public addresses of nodes do not answer"
    elif targets:
        why = (
            f"{where} leads to the internet by {', '.join(targets)}, which nodes without a public "
            "address cannot use"
        )
    else:
        why = f"{where} has no route to the internet, so nodes cannot install packages"
    if public:
        return why, f"Add an internet gateway: {command} {_ANY} --gateway-id igw-ID"
    return why, f"Add a NAT gateway: {command} {_ANY} --nat-gateway-id nat-ID"


def _beyond(targets: Iterable[str]) -> list[str]:
    """Return the targets that nodes without a public IPv4 address can use."""
    return [target for target in targets if not target.startswith("igw-")]
