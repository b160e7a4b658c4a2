"""Problems of the file systems and buckets of a template, before a launch."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence

from starcluster.aws.filesystems import FileSystem
from starcluster.aws.model import Image
from starcluster.config.template import Template
from starcluster.config.volume import Kind, Volume, file_systems
from starcluster.launch.storage.inventory import StorageInventory, port_of
from starcluster.model import group_name

_DEBIAN = re.compile(r"debian-\d+-")


def storage_problems(
    template: Template,
    storage: StorageInventory,
    images: Iterable[Image],
    zones: Sequence[str],
) -> Iterator[tuple[str, str]]:
    """Yield the config key and the text of each problem with file systems and buckets.

    Args:
        images: The images of the nodes.
        zones: The zones that nodes can be in.
    """
    for volume in file_systems(template.volumes):
        if volume.kind is Kind.S3:
            problems = _bucket_problems(volume, template, storage)
        else:
            problems = _file_system_problems(volume, storage, zones)
        for text in problems:
            yield "volumes", f"{volume.name}: {text}"
        if volume.kind is Kind.FSX:
            for image in images:
                if _DEBIAN.match(image.name):
                    text = f"AWS has no Lustre client for Debian, and {image.id} is {image.name}"
                    yield "volumes", f"{volume.name}: {text}. Use an image of Ubuntu"


def _bucket_problems(
    volume: Volume, template: Template, storage: StorageInventory
) -> Iterator[str]:
    if volume.bucket not in storage.buckets:
        yield f"there is no bucket {volume.bucket}. List yours: aws s3 ls"
    if not template.instance_profile and "no-sign-request" not in volume.mount_options:
        yield (
            f"the nodes have no permission to read bucket {volume.bucket}: set instance_profile to "
            "a role with s3:ListBucket and s3:GetObject"
        )


def _file_system_problems(
    volume: Volume, storage: StorageInventory, zones: Sequence[str]
) -> Iterator[str]:
    found = storage.file_systems.get(volume.id)
    if found is None:
        yield f"this region has no {volume.kind.service} file system {volume.id}"
        return
    if found.state:
        yield f"{found.id} is {found.state}"
    if volume.kind is Kind.FSX and found.kind != "LUSTRE":
        yield f"{found.id} is of type {found.kind}; only FSx for Lustre can be mounted"
        return
    yield from _network_problems(volume, found, storage, zones)
    if volume.access_point:
        owner, state = storage.access_points.get(volume.access_point, ("", "missing"))
        if owner and owner != found.id:
            yield f"access point {volume.access_point} is of {owner}, not of {found.id}"
        elif state:
            yield f"access point {volume.access_point} is {state}"


def _network_problems(
    volume: Volume, found: FileSystem, storage: StorageInventory, zones: Sequence[str]
) -> Iterator[str]:
    if not found.vpc:
        yield f"{found.id} has no mount target that is available. {new_target(found, storage)}"
        return
    if storage.vpc and found.vpc != storage.vpc:
        yield f"{found.id} is in {found.vpc}, but the nodes are in {storage.vpc}"
        return
    if not storage.names:
        yield (
            f"{storage.vpc} does not resolve the name of {found.id}. Run: "
            f"aws ec2 modify-vpc-attribute --vpc-id {storage.vpc} --enable-dns-hostnames, "
            "and the same with --enable-dns-support"
        )
    if volume.kind is Kind.EFS and zones and not set(found.zones) & set(zones):
        text = f"{found.id} has mount targets in {', '.join(found.zones)}, but not in"
        yield f"{text} {', '.join(zones)}. {new_target(found, storage)}"
    yield from _closed(volume, found, storage)


def new_target(found: FileSystem, storage: StorageInventory) -> str:
    """Return the command that creates a mount target for the nodes."""
    subnet = storage.subnets[0].id if storage.subnets else "SUBNET"
    return (
        f"Create one: aws efs create-mount-target --file-system-id {found.id} --subnet-id {subnet}"
    )


def _closed(volume: Volume, found: FileSystem, storage: StorageInventory) -> Iterator[str]:
    """Yield a problem if the security groups of a file system reject all nodes."""
    blocks = [subnet.cidr for subnet in storage.subnets if subnet.cidr]
    if found.id not in storage.clients or not blocks:
        return
    if not any(_lets_in(client, block) for client in storage.clients[found.id] for block in blocks):
        port = port_of(volume)
        group = found.group_ids[0]
        yield (
            f"no node can connect to port {port} of {found.id}. Open its security group, e.g.: "
            f"aws ec2 authorize-security-group-ingress --group-id {group} --protocol tcp "
            f"--port {port} --cidr {blocks[0]}"
        )


def _lets_in(client: str, block: str) -> bool:
    if client.startswith(("pl-", group_name(""))):  # the addresses of a list are not known here
        return True
    try:
        allowed = ipaddress.ip_network(client, strict=False)
    except ValueError:
        return False  # a group that nodes are not in
    return ipaddress.ip_network(block).subnet_of(allowed)  # type: ignore[arg-type]
