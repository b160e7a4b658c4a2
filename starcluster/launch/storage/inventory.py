"""Ask AWS about the file systems and buckets of a template."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from starcluster.aws.ec2 import Ec2
from starcluster.aws.filesystems import Bucket, FileSystem
from starcluster.aws.model import Subnet
from starcluster.config.template import Template
from starcluster.config.volume import Kind, Volume, file_systems
from starcluster.errors import NotFound

T = TypeVar("T")
NFS, LUSTRE = 2049, 988


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageInventory:
    """What AWS knows about the file systems and buckets of a template; missing ones are left out.

    Attributes:
        access_points: File system and state of each access point; state is empty if ready.
        vpc: VPC of the nodes; empty if the template has no file system.
        subnets: The subnets that nodes can be in.
        names: Whether the DNS of the VPC resolves names of file systems.
        clients: Who can connect to a file system, by its id; see ``FileSystems.clients_of``.
    """

    file_systems: Mapping[str, FileSystem] = field(default_factory=dict)
    access_points: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    buckets: Mapping[str, Bucket] = field(default_factory=dict)
    vpc: str = ""
    subnets: Sequence[Subnet] = ()
    names: bool = True
    clients: Mapping[str, Sequence[str]] = field(default_factory=dict)


def fetch_storage(ec2: Ec2, template: Template) -> StorageInventory:
    """Ask AWS about the file systems and buckets of a template; asks nothing without them."""
    volumes = file_systems(template.volumes)
    networked = [volume for volume in volumes if volume.kind is not Kind.S3]
    buckets = _found({volume.bucket for volume in volumes if volume.bucket}, ec2.bucket)
    if not networked:
        return StorageInventory(buckets=buckets)
    systems = _found({volume.efs_id for volume in volumes if volume.efs_id}, ec2.efs)
    systems |= _found({volume.fsx_id for volume in volumes if volume.fsx_id}, ec2.fsx)
    points = {volume.access_point for volume in volumes if volume.access_point}
    subnets = _subnets(ec2, template)
    vpc = subnets[0].vpc_id if subnets else ""
    ports = {volume.id: port_of(volume) for volume in networked}
    return StorageInventory(
        file_systems=systems,
        access_points=_found(points, ec2.access_point),
        buckets=buckets,
        vpc=vpc,
        subnets=subnets,
        names=not vpc or ec2.resolves_names(vpc),
        clients={
            id: ec2.clients_of(system.group_ids, ports[id])
            for id, system in systems.items()
            if system.group_ids
        },
    )


def _found(names: Collection[str], ask: Callable[[str], T]) -> dict[str, T]:
    found = {}
    for name in sorted(names):
        try:
            found[name] = ask(name)
        except NotFound:
            continue
    return found


def _subnets(ec2: Ec2, template: Template) -> list[Subnet]:
    try:
        if template.subnet_id:
            return ec2.subnets(template.subnet_id)
        return ec2.subnets(vpc=ec2.default_vpc(), zones=template.availability_zone)
    except NotFound:
        return []  # another check reports it


def port_of(volume: Volume) -> int:
    """Return the port of the servers of a file system of EFS or FSx."""
    return NFS if volume.kind is Kind.EFS else LUSTRE
