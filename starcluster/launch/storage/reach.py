"""Launch where nodes reach the file systems, and tell nodes what to mount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from starcluster.aws.ec2 import Ec2
from starcluster.aws.filesystems import efs_name
from starcluster.aws.model import Subnet
from starcluster.config.sections import Permission
from starcluster.config.template import Template
from starcluster.config.volume import Kind, Volume, file_systems
from starcluster.errors import AwsError, ConfigError
from starcluster.launch.storage.inventory import LUSTRE, StorageInventory
from starcluster.launch.storage.problems import new_target

_LUSTRE_TOO = (1018, 1023)


def reachable(
    template: Template, storage: StorageInventory, subnets: Sequence[Subnet]
) -> list[Subnet]:
    """Return the subnets from which nodes reach every file system; the nearest ones first.

    Raises:
        ConfigError: There is none.
    """
    left = list(subnets)
    for volume in file_systems(template.volumes):
        found = storage.file_systems.get(volume.id)
        if volume.kind is Kind.EFS and found is not None:
            left = [subnet for subnet in left if subnet.zone in found.zones]
            if not left:
                raise ConfigError(
                    f"volume {volume.name}: {found.id} has no mount target in the zones of the "
                    f"nodes: {', '.join(sorted({subnet.zone for subnet in subnets}))}",
                    new_target(found, storage),
                )
    if template.subnet_id or template.availability_zone:
        return left
    near = {
        zone
        for volume in file_systems(template.volumes)
        if volume.fsx_id in storage.file_systems
        for zone in storage.file_systems[volume.fsx_id].zones
    }
    return sorted(left, key=lambda subnet: subnet.zone not in near) if near else left


def ports_for_servers(template: Template, storage: StorageInventory) -> tuple[Permission, ...]:
    """Return the ports of the nodes that the servers of FSx for Lustre connect to."""
    ports = ((LUSTRE, LUSTRE), _LUSTRE_TOO)
    blocks = {
        cidr: None
        for volume in file_systems(template.volumes)
        if volume.fsx_id in storage.file_systems
        for cidr in storage.file_systems[volume.fsx_id].cidrs
    }
    return tuple(
        Permission(name="lustre", from_port=first, to_port=last, cidr_ip=cidr)
        for cidr in blocks
        for first, last in ports
    )


def located(ec2: Ec2, template: Template) -> Template:
    """Return the template with what ``mount`` needs to find its file systems.

    Raises:
        AwsError: A file system does not exist.
    """
    if not file_systems(template.volumes):
        return template
    return replace(template, volumes=tuple(_located(ec2, volume) for volume in template.volumes))


def _located(ec2: Ec2, volume: Volume) -> Volume:
    if volume.kind is Kind.EFS:
        return replace(volume, source=efs_name(volume.efs_id, ec2.region))
    if volume.kind is Kind.FSX:
        try:
            return replace(volume, source=ec2.fsx(volume.fsx_id).source)
        except AwsError as error:
            raise type(error)(f"volume {volume.name}: {error.what}", error.fix) from error
    return volume
