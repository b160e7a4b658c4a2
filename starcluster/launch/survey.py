"""Collect from AWS, in parallel, everything that a launch needs to know; changes nothing."""

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
"""Timeout in seconds for prices that are only displayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchContext:
    """Resources and prices of the region for a template.

    Attributes:
        subnets: In order of preference.
        images: By their names in the template.
        on_demand, spot: Dollars per hour by type; types with an unknown price are left out.
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
    """Ask AWS for everything that a launch needs; raise if something is missing.

    Args:
        inventory: Resources that are already known and not requested a second time.
    """
    if template.disable_cloudinit:
        raise ConfigError(
            f"template '{template.name}' sets disable_cloudinit, "
            "but nodes get their host keys from cloud-init",
            "Remove disable_cloudinit, and use an image that has cloud-init.",
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
    # A volume can only be attached to instances in its own zone.
    if zones := {volume.zone for volume in found["volumes"]}:
        subnets = [subnet for subnet in subnets if subnet.zone in zones]
        if not subnets:
            raise ConfigError(
                f"template '{template.name}' has no subnet in {', '.join(sorted(zones))}, "
                "where its volumes are",
                "Set availability_zone to that zone, or subnet_id to a subnet in it.",
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
    """Return prices; if they are only displayed, stop waiting after ``PRICES_S``."""
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
