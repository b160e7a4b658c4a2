"""Compute the nodes of a cluster and their cost; no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from starcluster.aws.model import Instance, LaunchRequest, Place, Subnet
from starcluster.config.parsers import NodeType
from starcluster.config.template import Template
from starcluster.errors import InputError
from starcluster.model import MASTER

# The name is part of names in AWS, where * and ? are wildcards, and of local paths.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_name(cluster: str) -> None:
    """Raise InputError for an invalid cluster name."""
    if not _NAME.fullmatch(cluster):
        raise InputError(
            f"invalid cluster name '{cluster}'",
            "Use up to 100 letters, digits, dots, hyphens and underscores; "
            "start with a letter or digit.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A node to launch; ``image_id`` is written as in the template."""

    alias: str
    instance_type: str
    image_id: str
    spot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Dollars per hour of all nodes; ``unknown`` has the types whose price AWS did not report."""

    dollars: float
    unknown: tuple[str, ...] = ()

    def __add__(self, other: Cost) -> Cost:
        unknown = dict.fromkeys((*self.unknown, *other.unknown))
        return Cost(dollars=self.dollars + other.dollars, unknown=tuple(unknown))

    def __str__(self) -> str:
        if self.unknown and not self.dollars:
            return "price unknown"
        more = f" plus {', '.join(self.unknown)} (price unknown)" if self.unknown else ""
        return f"${self.dollars:.2f}/h{more}"


def whole_cluster(template: Template) -> tuple[Planned, ...]:
    """Return all nodes of a new cluster, the master first."""
    spot = template.spot_bid is not None
    master = _planned(MASTER, template.type_of_master(), spot=spot and template.force_spot_master)
    nodes = [
        _planned(alias_of(number), kind, spot=spot)
        for number, kind in enumerate(template.types_of_nodes(), start=1)
    ]
    return (master, *nodes)


def more_nodes(template: Template, aliases: Iterable[str]) -> tuple[Planned, ...]:
    """Return nodes to add to a cluster, of the same type as its last nodes."""
    last = template.node_instance_type[-1]
    kind = NodeType(
        instance_type=last.instance_type, image_id=last.image_id or template.node_image_id
    )
    return tuple(_planned(alias, kind, spot=template.spot_bid is not None) for alias in aliases)


def _planned(alias: str, kind: NodeType, *, spot: bool) -> Planned:
    return Planned(alias=alias, instance_type=kind.instance_type, image_id=kind.image_id, spot=spot)


def alias_of(number: int) -> str:
    """Return the alias of a node by its number, which starts at 1."""
    return f"node{number:03d}"


def free_aliases(taken: Iterable[str], count: int) -> list[str]:
    """Return the aliases of ``count`` new nodes, numbered after the highest of ``taken``."""
    numbers = [
        int(alias[4:]) for alias in taken if alias.startswith("node") and alias[4:].isdigit()
    ]
    first = max(numbers, default=0) + 1
    return [alias_of(number) for number in range(first, first + count)]


def host_name(cluster: str, alias: str, template: Template) -> str:
    """Return the host name of a node: its alias, prefixed with the cluster if dns_prefix is set."""
    return f"{cluster}-{alias}" if template.dns_prefix else alias


def batches(nodes: Iterable[Planned]) -> list[tuple[Planned, ...]]:
    """Group the nodes by type, image and spot, in the order of each group's first node."""
    alike: dict[tuple[str, str, bool], list[Planned]] = {}
    for node in nodes:
        alike.setdefault((node.instance_type, node.image_id, node.spot), []).append(node)
    return [tuple(group) for group in alike.values()]


def cost(
    nodes: Iterable[Planned], on_demand: Mapping[str, float], spot: Mapping[str, float]
) -> Cost:
    """Return the cost of ``nodes``; prices are dollars per hour by instance type."""
    total, unknown = 0.0, []
    for node in nodes:
        price = (spot if node.spot else on_demand).get(node.instance_type)
        price = on_demand.get(node.instance_type) if price is None else price
        total += price or 0.0
        if price is None:
            unknown.append(node.instance_type)
    return Cost(dollars=total, unknown=tuple(dict.fromkeys(unknown)))


def cost_of(instances: Iterable[Instance], on_demand: Mapping[str, float]) -> Cost:
    """Return an upper bound of the cost of running instances: their on-demand prices.

    Those in a Capacity Block cost nothing more.
    """
    running = [
        instance
        for instance in instances
        if instance.state in ("pending", "running") and not instance.prepaid
    ]
    nodes = [
        Planned(alias=instance.alias, instance_type=instance.type, image_id="")
        for instance in running
    ]
    return cost(nodes, on_demand, {})


def check_cost(template: Template, found: Cost) -> None:
    """Raise InputError if the cost exceeds the template's max_hourly_cost or is unknown."""
    limit = template.max_hourly_cost
    if limit is None:
        return
    if found.unknown:
        raise InputError(
            f"cannot check max_hourly_cost = ${limit:.2f}: AWS does not report the price of "
            f"{', '.join(found.unknown)}",
            "Allow these credentials pricing:GetProducts, or remove max_hourly_cost.",
        )
    if found.dollars > limit:
        raise InputError(
            f"the cluster would cost {found}, more than max_hourly_cost = ${limit:.2f}; "
            "nothing was launched",
            "Use fewer or smaller nodes, or raise max_hourly_cost in the template.",
        )


def ordered_subnets(template: Template, subnets: Sequence[Subnet]) -> list[Subnet]:
    """Return the subnets in the template's order; within a zone, most free addresses first."""
    if template.subnet_id:
        rank = {name: number for number, name in enumerate(template.subnet_id)}
        return sorted(subnets, key=lambda subnet: rank.get(subnet.id, len(rank)))
    zones = {name: number for number, name in enumerate(template.availability_zone)}
    wanted = [subnet for subnet in subnets if not zones or subnet.zone in zones]
    return sorted(
        wanted, key=lambda subnet: (zones.get(subnet.zone, 0), subnet.zone, -subnet.free_addresses)
    )


def places(
    template: Template,
    instance_type: str,
    subnets: Sequence[Subnet],
    offers: Mapping[str, Sequence[str]],
) -> tuple[Place, ...]:
    """Return where to launch: the wanted type in all subnets first, then the fallback types."""
    types = dict.fromkeys((instance_type, *template.fallback_instance_types))
    return tuple(
        Place(instance_type=kind, subnet_id=subnet.id, zone=subnet.zone)
        for kind in types
        for subnet in subnets
        if kind not in offers or subnet.zone in offers[kind]
    )


def request(
    batch: Sequence[Planned],
    where: tuple[Place, ...],
    template: Template,
    base: LaunchRequest,
) -> LaunchRequest:
    """Return the request to EC2; ``base`` has image, groups, user data and tags."""
    return LaunchRequest(
        image_id=base.image_id,
        count=len(batch),
        places=where,
        key_name=template.keyname,
        group_ids=base.group_ids,
        user_data=base.user_data,
        tags=base.tags,
        other_tags=base.other_tags,
        spot=batch[0].spot,
        spot_bid=template.spot_bid if batch[0].spot else None,
        placement_group=base.placement_group,
        root_device=base.root_device,
        root_size_gib=template.root_volume_size,
        root_encrypted=template.root_volume_encrypted,
        public_ip=template.public_ips,
        interfaces=base.interfaces,
        token=base.token,
        instance_profile=template.instance_profile,
        capacity_reservation=base.capacity_reservation,
        capacity_block=base.capacity_block,
        template_id=base.template_id,
        # Only root of the node; with a second hop a container could ask too.
        metadata_hops=1 if template.metadata_access == "root" else 2,
    )


# Codes in Service Quotas for on-demand and spot instances, by the first letters of a type.
_QUOTAS = {
    ("g", "vt"): (("L-DB2E81BA", "L-3819A6DF"), "G and VT"),
    ("p",): (("L-417A185B", "L-7212CCBC"), "P"),
    ("a", "c", "d", "h", "i", "m", "r", "t", "z"): (("L-1216C47A", "L-34B43A08"), "Standard"),
}


def quota_of(instance_type: str, *, spot: bool) -> tuple[str, str] | None:
    """Return code and name of the quota that an instance counts toward; None for a rare type."""
    letters = re.match(r"[a-z]+", instance_type.partition(".")[0])
    for families, (codes, name) in _QUOTAS.items():
        if letters and letters[0] in families:
            return codes[spot], f"{name} {'spot' if spot else 'on-demand'} instances"
    return None
