"""Collect from AWS, in parallel, everything that a launch needs to know; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume, Image, InstanceType, Subnet
from starcluster.aws.routes import RouteTables
from starcluster.config.account import names_reservation
from starcluster.config.sections import Permission
from starcluster.config.template import Template
from starcluster.config.volume import disks
from starcluster.errors import AwsError, ClusterError, ConfigError, NotFound
from starcluster.launch import efa, plan, zones
from starcluster.launch.plan import Planned
from starcluster.launch.preflight import AwsInventory
from starcluster.launch.reserved import Reserved
from starcluster.launch.ssh_access import caller_of
from starcluster.launch.storage import fetch_storage, ports_for_servers, reachable
from starcluster.launch.way_out import tables_of, with_way_out
from starcluster.launch.zones import SpotZone
from starcluster.threadpool import ThreadPool, soon

PRICES_S = 5.0
"""Timeout in seconds for prices that are only displayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """Resources and prices of the region for a template.

    Attributes:
        subnets: In order of preference.
        images: By their names in the template.
        caller: Address of this machine as a CIDR block, to which SSH is opened; empty for none.
        on_demand, spot: Dollars per hour by type, 0 in a Capacity Block; types with an unknown
            price are left out.
        spot_zones: Zones for spot instances, the best first; empty unless these decide.
        efa: The instance types whose nodes get EFA.
        ports: Ports to open for the servers of file systems.
    """

    vpc: str
    subnets: tuple[Subnet, ...]
    images: Mapping[str, Image]
    offers: Mapping[str, Sequence[str]]
    on_demand: Mapping[str, float] = field(default_factory=dict)
    spot: Mapping[str, float] = field(default_factory=dict)
    reserved: Reserved = field(default_factory=Reserved)
    spot_zones: tuple[SpotZone, ...] = ()
    efa: Mapping[str, InstanceType] = field(default_factory=dict)
    caller: str = ""
    ports: tuple[Permission, ...] = ()


def gather(
    ec2: Ec2,
    template: Template,
    nodes: Sequence[Planned],
    inventory: AwsInventory | None = None,
    *,
    new: bool = False,
) -> LaunchContext:
    """Ask AWS for everything that a launch needs; raise if something is missing.

    Args:
        inventory: Resources that are already known and not requested a second time.
        new: Whether the cluster is new, so SSH is not open yet to this machine.
    """
    _require_cloudinit(template)
    types = sorted({node.instance_type for node in nodes} | set(template.fallback_instance_types))
    found = _all_results(_questions(ec2, template, nodes, types, inventory))
    subnets = _usable_subnets(ec2, template, nodes, found)
    spot = dict(found["spot"])
    ranked = _spot_zones(ec2, template, nodes, subnets, found["offers"])
    if ranked:
        subnets = zones.ordered(subnets, ranked)
        spot |= ranked[0].dollars
    reserved = found["reserved"]
    return LaunchContext(
        caller=caller_of(ec2, template, subnets) if new else "",
        spot_zones=tuple(ranked),
        reserved=reserved,
        efa=found["efa"],
        vpc=found["network"][0],
        subnets=tuple(subnets),
        images=found["images"],
        offers=found["offers"],
        on_demand={**found["on_demand"], **dict.fromkeys(reserved.prepaid, 0.0)},
        ports=ports_for_servers(template, found["storage"]),
        spot=spot,
    )


def _require_cloudinit(template: Template) -> None:
    if template.disable_cloudinit:
        raise ConfigError(
            f"template '{template.name}' sets disable_cloudinit, "
            "but nodes get their host keys from cloud-init",
            "Remove disable_cloudinit, and use an image that has cloud-init.",
        )


def _questions(
    ec2: Ec2,
    template: Template,
    nodes: Sequence[Planned],
    types: Sequence[str],
    inventory: AwsInventory | None,
) -> dict[str, Callable[[], Any]]:
    """Return what to ask AWS: the functions that send the requests, by the name of the result."""
    names = {node.instance_type for node in nodes}
    priced = names if template.max_hourly_cost is None else types
    return {
        "network": lambda: _network(ec2, template, inventory),
        "volumes": lambda: _volumes(ec2, template, inventory),
        "storage": lambda: inventory.storage if inventory else fetch_storage(ec2, template),
        "images": lambda: _images(ec2, {node.image_id for node in nodes}, inventory),
        "reserved": lambda: _reserved(ec2, template, inventory),
        "efa": lambda: _efa(ec2, template, types, inventory),
        "offers": lambda: inventory.offers if inventory else ec2.zones_offering(types),
        "on_demand": lambda: _prices(lambda: prices.on_demand(ec2, priced), template),
        "spot": lambda: _prices(
            lambda: prices.spot(ec2, [node.instance_type for node in nodes if node.spot]), template
        ),
    }


def _usable_subnets(
    ec2: Ec2, template: Template, nodes: Sequence[Planned], found: Mapping[str, Any]
) -> list[Subnet]:
    """Return the subnets where nodes reach their volumes, reservation, storage and the internet.

    Args:
        found: The results of :func:`_questions`.

    Raises:
        ConfigError: There are none.
    """
    _, subnets, tables = found["network"]
    # A volume can only be attached to instances in its own zone.
    if disks := {volume.zone for volume in found["volumes"]}:
        subnets = _within(template, subnets, disks, "its volumes are")
    reserved = found["reserved"]
    if any(reserved.takes(node.instance_type) for node in nodes):
        subnets = _within(template, subnets, reserved.zones, "its capacity reservation is")
    subnets = reachable(template, found["storage"], subnets)
    return with_way_out(
        ec2.region, template, nodes, subnets, tables, found["images"].values(), found["efa"]
    )


def _all_results(questions: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Ask all questions at the same time; raise the first error in their order."""
    answers = ThreadPool().map(_result_or_error, questions.values())
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return dict(zip(questions, answers, strict=True))


def _within(
    template: Template, subnets: Sequence[Subnet], allowed: Collection[str], what: str
) -> list[Subnet]:
    """Return the subnets in the ``allowed`` zones. Raises ConfigError if there are none."""
    found = [subnet for subnet in subnets if subnet.zone in allowed]
    if not found:
        raise ConfigError(
            f"template '{template.name}' has no subnet in {', '.join(sorted(allowed))}, "
            f"where {what}",
            "Set availability_zone to that zone, or subnet_id to a subnet in it.",
        )
    return found


def _spot_zones(
    ec2: Ec2,
    template: Template,
    nodes: Sequence[Planned],
    subnets: Sequence[Subnet],
    offers: Mapping[str, Sequence[str]],
) -> list[SpotZone]:
    """Return the zones in the order for spot nodes; empty if the user or a volume decides."""
    types = [node.instance_type for node in nodes if node.spot]
    names = [
        zone
        for zone in dict.fromkeys(subnet.zone for subnet in subnets)
        if all(zone in offers.get(node.instance_type, (zone,)) for node in nodes)
    ]
    if not types or len(names) < 2 or template.availability_zone or template.subnet_id:
        return []
    fallback = template.fallback_instance_types
    unknown: list[SpotZone] = []
    return soon(
        lambda: zones.best_first(ec2, types, fallback, len(types), names),
        within_s=PRICES_S,
        otherwise=unknown,
    )


def _result_or_error(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (AwsError, ConfigError, ClusterError) as error:
        return error


def _prices(ask: Callable[[], Mapping[str, float]], template: Template) -> Mapping[str, float]:
    """Return prices; if they are only displayed, stop waiting after ``PRICES_S``."""
    if template.max_hourly_cost is not None:
        return ask()
    return soon(ask, within_s=PRICES_S, otherwise={})


def _images(ec2: Ec2, names: Iterable[str], inventory: AwsInventory | None) -> dict[str, Image]:
    known = inventory.images if inventory else {}
    return {name: known.get(name) or ec2.image(name) for name in names}


def _reserved(ec2: Ec2, template: Template, inventory: AwsInventory | None) -> Reserved:
    if inventory and inventory.reserved:
        return inventory.reserved
    reference = template.capacity_reservation
    found = ec2.reservations(reference) if names_reservation(reference) else ()
    return Reserved(reference=reference, found=tuple(found))


def _efa(
    ec2: Ec2, template: Template, types: Sequence[str], inventory: AwsInventory | None
) -> Mapping[str, InstanceType]:
    if template.efa == "false":
        return {}
    return efa.wanted(template, inventory.types if inventory else ec2.instance_types(types))


def _volumes(ec2: Ec2, template: Template, inventory: AwsInventory | None) -> list[EbsVolume]:
    ids = [volume.volume_id for volume in disks(template.volumes)]
    if inventory and all(id in inventory.volumes for id in ids):
        return [inventory.volumes[id] for id in ids]
    return ec2.volumes(ids) if ids else []


def _network(
    ec2: Ec2, template: Template, inventory: AwsInventory | None
) -> tuple[str, list[Subnet], RouteTables | None]:
    vpc, subnets = _subnets(ec2, template, inventory)
    return vpc, subnets, tables_of(ec2, vpc)


def _subnets(
    ec2: Ec2, template: Template, inventory: AwsInventory | None
) -> tuple[str, list[Subnet]]:
    if template.subnet_id:
        found = list(inventory.subnets.values()) if inventory else ec2.subnets(template.subnet_id)
        vpcs = sorted({subnet.vpc_id for subnet in found})
        if len(vpcs) > 1:
            raise ConfigError(
                f"the subnets of template '{template.name}' belong to several VPCs: "
                f"{', '.join(vpcs)}",
                "Use subnets of one VPC: nodes must reach each other.",
            )
        return vpcs[0], plan.ordered_subnets(template, found)
    vpc = ec2.default_vpc()
    ordered = plan.ordered_subnets(template, ec2.subnets(vpc=vpc))
    if not ordered:
        wanted = ", ".join(template.availability_zone) or "any zone"
        raise NotFound(
            f"the default VPC of {ec2.region} has no subnet in {wanted}",
            "List the zones: starcluster listzones. Or set subnet_id in the template.",
        )
    return vpc, ordered
