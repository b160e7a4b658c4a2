"""Ask AWS for all that a launch needs to know, side by side; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from starcluster.aws import prices
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume, Image, Subnet
from starcluster.config.template import Template
from starcluster.errors import AwsError, ClusterError, ConfigError, NotFound
from starcluster.launch import plan
from starcluster.launch.plan import Planned
from starcluster.launch.preflight import AwsInventory
from starcluster.threadpool import ThreadPool, soon

PRICES_S = 5.0
"""Seconds to wait for prices that are only shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """What the region has for a template.

    Attributes:
        subnets: In order of preference.
        images: By what the template calls them.
        on_demand, spot: Dollars per hour of each type; types of unknown price are left out.
    """

    vpc: str
    subnets: tuple[Subnet, ...]
    images: Mapping[str, Image]
    offers: Mapping[str, Sequence[str]]
    on_demand: Mapping[str, float] = field(default_factory=dict)
    spot: Mapping[str, float] = field(default_factory=dict)


def gather(
    ec2: Ec2, template: Template, nodes: Sequence[Planned], inventory: AwsInventory | None = None
) -> LaunchContext:
    """Ask AWS for all that a launch needs; raises for what is not there. Changes nothing.

    Args:
        inventory: What is known already, and not requested again.
    """
    if template.disable_cloudinit:
        raise ConfigError(
            f"template '{template.name}' has disable_cloudinit",
            "Nodes get their host keys by cloud-init: take an image that has it.",
        )
    names = {node.instance_type for node in nodes}
    types = sorted(names | set(template.fallback_instance_types))
    priced = names if template.max_hourly_cost is None else types
    questions = {
        "subnets": lambda: _subnets(ec2, template, inventory),
        "volumes": lambda: _volumes(ec2, template, inventory),
        "images": lambda: _images(ec2, {node.image_id for node in nodes}, inventory),
        "offers": lambda: inventory.offers if inventory else ec2.zones_offering(types),
        "on_demand": lambda: _prices(lambda: prices.on_demand(ec2, priced), template),
        "spot": lambda: _prices(
            lambda: prices.spot(ec2, [node.instance_type for node in nodes if node.spot]), template
        ),
    }
    found = dict(
        zip(questions, ThreadPool().map(_result_or_error, questions.values()), strict=True)
    )
    for value in found.values():
        if isinstance(value, Exception):
            raise value
    vpc, subnets = found["subnets"]
    # A volume can be attached in its own zone only.
    if zones := {volume.zone for volume in found["volumes"]}:
        subnets = [subnet for subnet in subnets if subnet.zone in zones]
        if not subnets:
            raise ConfigError(
                f"the volumes of template '{template.name}' are in {', '.join(sorted(zones))}, "
                "where it has no subnet",
                "Name that zone, or a subnet there.",
            )
    return LaunchContext(
        vpc=vpc,
        subnets=tuple(subnets),
        images=found["images"],
        offers=found["offers"],
        on_demand=found["on_demand"],
        spot=found["spot"],
    )


def _result_or_error(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (AwsError, ConfigError, ClusterError) as error:
        return error


def _prices(ask: Callable[[], Mapping[str, float]], template: Template) -> Mapping[str, float]:
    """Return prices; where they are only for people, without waiting long for them."""
    if template.max_hourly_cost is not None:
        return ask()
    return soon(ask, within_s=PRICES_S, otherwise={})


def _images(ec2: Ec2, names: Iterable[str], inventory: AwsInventory | None) -> dict[str, Image]:
    known = inventory.images if inventory else {}
    return {name: known.get(name) or ec2.image(name) for name in names}


def _volumes(ec2: Ec2, template: Template, inventory: AwsInventory | None) -> list[EbsVolume]:
    ids = [volume.volume_id for volume in template.volumes]
    if inventory and all(id in inventory.volumes for id in ids):
        return [inventory.volumes[id] for id in ids]
    return ec2.volumes(ids) if ids else []


def _subnets(
    ec2: Ec2, template: Template, inventory: AwsInventory | None
) -> tuple[str, list[Subnet]]:
    if template.subnet_id:
        found = list(inventory.subnets.values()) if inventory else ec2.subnets(template.subnet_id)
        vpcs = sorted({subnet.vpc_id for subnet in found})
        if len(vpcs) > 1:
            raise ConfigError(
                f"the subnets of template '{template.name}' are of several VPCs: {', '.join(vpcs)}",
                "Nodes must reach one another: name subnets of one VPC.",
            )
        return vpcs[0], plan.ordered_subnets(template, found)
    vpc = ec2.default_vpc()
    ordered = plan.ordered_subnets(template, ec2.subnets(vpc=vpc))
    if not ordered:
        wanted = ", ".join(template.availability_zone) or "any zone"
        raise NotFound(
            f"the default VPC of {ec2.region} has no subnet in {wanted}",
            "See the zones: starcluster listzones; or give subnet_id in the template.",
        )
    return vpc, ordered
