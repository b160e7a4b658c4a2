"""What stays and costs when a cluster is terminated, and what its stopped disks cost."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from starcluster.aws.disks import cost_of_disks
from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import ElasticIp, Image
from starcluster.cluster.cluster import Cluster
from starcluster.config.config import Config
from starcluster.config.volume import Volume, disks, file_systems
from starcluster.errors import AwsError, StarClusterError

_UNKNOWN = "Whether volumes, images or addresses stay is unknown, AWS did not answer: {0}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Resources that outlast the instances of a cluster; ``error`` if AWS did not list them."""

    volumes: tuple[str, ...] = ()
    file_systems: tuple[Volume, ...] = ()
    images: tuple[Image, ...] = ()
    addresses: tuple[ElasticIp, ...] = ()
    error: str = ""


def remains_of(ec2: Ec2, config: Config, name: str) -> Remains:
    """Return what would stay after the end of a cluster; call it before the end."""
    try:
        cluster = Cluster(name, ec2.instances(cluster=name), ec2, config)
        ids = [instance.id for instance in cluster.instances]
        attached = ec2.volumes(filters={"attachment.instance-id": ids}) if ids else []
        volumes = {volume.id for volume in attached if volume.stays}
        mounted: tuple[Volume, ...] = ()
        with contextlib.suppress(StarClusterError):  # a template with mistakes
            volumes |= {volume.volume_id for volume in disks(cluster.template.volumes)}
            mounted = file_systems(cluster.template.volumes)
        return Remains(
            volumes=tuple(sorted(volumes)),
            file_systems=mounted,
            images=tuple(ec2.images_of(name)),
            addresses=tuple(ec2.elastic_ips(ids)) if ids else (),
        )
    except AwsError as error:
        return Remains(error=error.what)


def describe_remains(ec2: Ec2, remains: Remains) -> list[str]:
    """Return what stays, what it costs and how to remove it, as lines; none if nothing stays."""
    if remains.error:
        return [_UNKNOWN.format(remains.error)]
    lines = _volume_lines(ec2, remains.volumes)
    lines += [
        f"  {volume.kind.service} {volume.id} ({volume.name}), with all its data"
        for volume in remains.file_systems
    ]
    for image in remains.images:
        snapshots = ", ".join(image.snapshots)
        lines.append(
            f"  image {image.id} ({image.name}), billed by the data in {snapshots}: "
            f"starcluster removeimage {image.id}"
        )
    for address in remains.addresses:
        lines.append(
            f"  elastic address {address.ip}, billed by the hour: "
            f"aws ec2 release-address --allocation-id {address.allocation}"
        )
    return ["Still there, and billed by AWS:", *lines] if lines else []


def _volume_lines(ec2: Ec2, ids: tuple[str, ...]) -> list[str]:
    if not ids:
        return []
    try:
        found = ec2.volumes(filters={"volume-id": ids})
    except AwsError:
        return [f"  volume {id}, price unknown: starcluster removevolume {id}" for id in ids]
    lines = []
    for volume in found:
        name = f" ({volume.tags['Name']})" if volume.tags.get("Name") else ""
        lines.append(
            f"  volume {volume.id}{name}, {volume.size_gib} GiB {volume.type}, "
            f"{cost_of_disks(ec2, [volume])}: starcluster removevolume {volume.id}"
        )
    return lines


def describe_disks(ec2: Ec2, name: str) -> str:
    """Return what the disks of a stopped cluster cost."""
    try:
        ids = [instance.id for instance in ec2.instances(cluster=name)]
        found = ec2.volumes(filters={"attachment.instance-id": ids}) if ids else []
    except AwsError as error:
        return f"AWS bills the disks of stopped instances; their cost is unknown: {error.what}"
    if not found:
        return "No disk of the cluster is left."
    cost = cost_of_disks(ec2, found)
    disks = "1 disk" if len(found) == 1 else f"{len(found)} disks"
    return f"AWS bills its {disks}, {cost.gib} GiB, but no instance: {cost}."
