"""Check a template against AWS and report every problem in one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import EbsVolume, Image, InstanceProfile, InstanceType, Subnet
from starcluster.config.account import names_reservation
from starcluster.config.template import Template
from starcluster.config.volume import disks
from starcluster.errors import NotFound, did_you_mean
from starcluster.launch import efa
from starcluster.launch import reserved as reserving
from starcluster.launch.reserved import Reserved
from starcluster.launch.storage import StorageInventory, fetch_storage, storage_problems

T = TypeVar("T")

# Requests in parallel; each has its own retries and timeouts.
_AT_ONCE = 8
_ATTACHABLE = ("available", "creating")


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsInventory:
    """The AWS resources that a template names; missing ones are left out.

    Attributes:
        offers: Zones that offer each type.
        zones: Available zones of the region.
        keys: Public key by key pair name; empty if AWS does not report it.
        profile: The instance profile of the template; None if it does not exist.
        reserved: None if it was not asked for.
        storage: The file systems and buckets.
        meant: A suggestion for each type that is not offered.
    """

    region: str
    types: Mapping[str, InstanceType] = field(default_factory=dict)
    offers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    zones: Sequence[str] = ()
    images: Mapping[str, Image] = field(default_factory=dict)
    volumes: Mapping[str, EbsVolume] = field(default_factory=dict)
    subnets: Mapping[str, Subnet] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    profile: InstanceProfile | None = None
    reserved: Reserved | None = None
    storage: StorageInventory = field(default_factory=StorageInventory)
    meant: Mapping[str, str] = field(default_factory=dict)


def types_of(template: Template) -> list[str]:
    """Return every instance type that ``template`` names."""
    named = [item.instance_type for item in template.node_instance_type]
    named += [template.type_of_master().instance_type, *template.fallback_instance_types]
    return list(dict.fromkeys(named))


def images_of(template: Template) -> dict[str, list[str]]:
    """Return every image of ``template`` with the instance types that boot it."""
    found: dict[str, list[str]] = {}
    for node in (template.type_of_master(), *template.types_of_nodes()):
        types = found.setdefault(node.image_id, [])
        if node.instance_type not in types:
            types.append(node.instance_type)
    return found


def fetch(ec2: Ec2, template: Template) -> AwsInventory:
    """Ask AWS in parallel about everything that ``template`` names. Changes nothing."""
    names = types_of(template)
    volumes = {volume.volume_id for volume in disks(template.volumes)}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        types = pool.submit(ec2.instance_types, names)
        offers = pool.submit(ec2.zones_offering, names)
        zones = pool.submit(ec2.zones)
        keys = pool.submit(ec2.key_pairs)
        profile = (
            pool.submit(_found_or_none, ec2.instance_profile, template.instance_profile)
            if template.instance_profile
            else None
        )
        reference = template.capacity_reservation
        reservations = pool.submit(
            ec2.reservations if names_reservation(reference) else lambda _: [], reference
        )
        storage = pool.submit(fetch_storage, ec2, template)
        found_images = pool.map(lambda ref: _found_or_none(ec2.image, ref), images_of(template))
        found_volumes = pool.map(lambda id: _found_or_none(ec2.volume, id), sorted(volumes))
        found_subnets = pool.map(
            lambda id: _found_or_none(lambda id: ec2.subnets([id])[0], id), template.subnet_id
        )
        unknown = [name for name in names if name not in types.result()]
        known = ec2.offered_types() if unknown else []
        return AwsInventory(
            region=ec2.region,
            types=types.result(),
            offers=offers.result(),
            zones=[zone.name for zone in zones.result() if zone.state == "available"],
            images=_present(zip(images_of(template), found_images, strict=True)),
            volumes=_present(zip(sorted(volumes), found_volumes, strict=True)),
            subnets=_present(zip(template.subnet_id, found_subnets, strict=True)),
            keys={key.name: key.public for key in keys.result()},
            reserved=Reserved(reference=reference, found=tuple(reservations.result())),
            profile=profile.result() if profile else None,
            storage=storage.result(),
            meant={name: did_you_mean(name, known) for name in unknown},
        )


def _found_or_none(ask: Callable[[str], T], name: str) -> T | None:
    try:
        return ask(name)
    except NotFound:
        return None


def _present(pairs: Iterable[tuple[str, T | None]]) -> dict[str, T]:
    return {name: value for name, value in pairs if value is not None}


def aws_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    """Yield the config key and the description of each problem of ``template`` in AWS."""
    if template.keyname not in inventory.keys:
        text = f"{inventory.region} has no key pair '{template.keyname}'. "
        hint = did_you_mean(template.keyname, inventory.keys)
        yield "keyname", text + (hint or f"Create it: starcluster createkey {template.keyname}")
    yield from _type_problems(template, inventory)
    yield from _image_problems(template, inventory)
    for zone in template.availability_zone:
        if zone not in inventory.zones:
            hint = did_you_mean(zone, inventory.zones)
            text = f"{inventory.region} has no available zone '{zone}'. {hint}"
            yield "availability_zone", text.strip()
    for id in template.subnet_id:
        if id not in inventory.subnets:
            yield "subnet_id", f"{inventory.region} has no subnet {id}"
    free = sum(subnet.free_addresses for subnet in inventory.subnets.values())
    if inventory.subnets and free < template.cluster_size:
        yield "subnet_id", f"only {free} free addresses for {template.cluster_size} nodes"
    if len({subnet.vpc_id for subnet in inventory.subnets.values()}) > 1:
        yield "subnet_id", "the subnets belong to several VPCs, but nodes must reach each other"
    yield from _volume_problems(template, inventory)
    yield from _profile_problems(template, inventory)
    yield from efa.problems(template, inventory.types)
    zones = _zones_wanted(template, inventory)
    for text in reserving.problems(template, inventory.reserved, zones, datetime.now(UTC)):
        yield "capacity_reservation", text
    yield from storage_problems(template, inventory.storage, inventory.images.values(), zones)


def _zones_wanted(template: Template, inventory: AwsInventory) -> list[str]:
    """Return the zones that nodes can be in."""
    if template.subnet_id:
        return [subnet.zone for subnet in inventory.subnets.values()]
    return [zone for zone in template.availability_zone if zone in inventory.zones] or [
        *inventory.zones
    ]


def _type_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    wanted = _zones_wanted(template, inventory)
    fallback = set(template.fallback_instance_types)
    for name in types_of(template):
        key = "fallback_instance_types" if name in fallback else "node_instance_type"
        key = "master_instance_type" if name == template.master_instance_type else key
        if name not in inventory.types:
            text = f"{inventory.region} does not offer '{name}'. {inventory.meant.get(name, '')}"
            yield key, text.strip()
            continue
        zones = inventory.offers.get(name, ())
        if wanted and not set(wanted) & set(zones):
            text = f"{name} is not offered in {', '.join(wanted)}"
            yield key, f"{text}, but in {', '.join(zones)}" if zones else text
        if template.placement_group and not inventory.types[name].placement_group:
            yield "placement_group", f"{name} does not support placement groups"
        if template.spot_bid is not None and not inventory.types[name].spot:
            yield "spot_bid", f"{name} is not offered as a spot instance"


def _image_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    for reference, types in images_of(template).items():
        image = inventory.images.get(reference)
        key = "master_image_id" if reference == template.master_image_id else "node_image_id"
        if image is None:
            yield key, f"{inventory.region} has no image '{reference}'"
            continue
        if image.state not in ("", "available"):
            yield key, f"image {image.id} is {image.state}"
        if image.windows:
            text = f"image {image.id} is of Windows ({image.name}); nodes need Debian or Ubuntu"
            yield key, f"{text}. List images: starcluster listimages --stock"
        for name in types:
            known = inventory.types.get(name)
            if known and image.architecture not in ("", known.architecture):
                text = f"image {image.id} is for {image.architecture}"
                yield key, f"{text}, but {name} is {known.architecture}"
        size = template.root_volume_size
        if size is not None and size < image.root_size_gib:
            text = f"{size} GiB is less than the root volume of image {image.id}"
            yield "root_volume_size", f"{text} ({image.root_size_gib} GiB)"


def _volume_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    wanted = _zones_wanted(template, inventory)
    for volume in disks(template.volumes):
        found = inventory.volumes.get(volume.volume_id)
        if found is None:
            yield "volumes", f"{volume.name}: {inventory.region} has no volume {volume.volume_id}"
            continue
        if found.instance_id:
            yield "volumes", f"{volume.name}: {found.id} is attached to {found.instance_id}"
        elif found.state not in _ATTACHABLE:
            yield "volumes", f"{volume.name}: {found.id} is {found.state}"
        if wanted and found.zone not in wanted:
            text = f"{volume.name}: {found.id} is in {found.zone}"
            yield "volumes", f"{text}, but the nodes are in {', '.join(wanted)}"
    there = [inventory.volumes.get(volume.volume_id) for volume in disks(template.volumes)]
    zones = {found.zone for found in there if found is not None}
    if len(zones) > 1:
        yield "volumes", f"the volumes are in several zones: {', '.join(sorted(zones))}"


def _profile_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    wanted, found = template.instance_profile, inventory.profile
    name = wanted.rpartition("/")[2]
    if not wanted:
        return
    if found is None:
        text = f"the account has no instance profile '{name}'"
        yield "instance_profile", f"{text}. List them: aws iam list-instance-profiles"
    elif found.arn and wanted.startswith("arn:") and wanted != found.arn:
        yield "instance_profile", f"'{name}' of this account is {found.arn}"
    elif found.arn and not found.roles:
        text = f"'{name}' has no role. Add one: aws iam add-role-to-instance-profile"
        yield "instance_profile", f"{text} --instance-profile-name {name} --role-name ROLE"
