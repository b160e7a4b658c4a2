"""``[volume NAME]``, with the declarations of its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from starcluster.config.keys import setting
from starcluster.config.parsers import boolean, matching, prefix, whole


class Kind(StrEnum):
    """What a volume is; the value is the config key that has its id."""

    EBS = "volume_id"
    EFS = "efs_id"
    FSX = "fsx_id"
    S3 = "bucket"

    @property
    def service(self) -> str:
        """The name of the AWS service."""
        return _SERVICES[self]


_SERVICES = {Kind.EBS: "EBS", Kind.EFS: "EFS", Kind.FSX: "FSx for Lustre", Kind.S3: "S3"}
ONLY_OF = {
    "partition": (Kind.EBS,),
    "device": (Kind.EBS,),
    "access_point": (Kind.EFS,),
    "tls": (Kind.EFS,),
    "prefix": (Kind.S3,),
    "read_only": (Kind.EFS, Kind.FSX, Kind.S3),
    "mount_options": (Kind.EFS, Kind.FSX, Kind.S3),
}
"""The kinds that a key is for, if it is not for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """``[volume NAME]``: storage that all nodes mount; the ``help`` of each key says how.

    Attributes:
        source: What ``mount`` gets if the keys do not say it; empty otherwise.
    """

    name: str
    volume_id: str = field(
        default="",
        metadata=setting(
            matching(r"vol-[0-9a-f]{8,17}", "expected a volume id such as vol-0a1b2c3d"),
            "Id of an EBS volume. It must be in the same zone as the nodes. The master mounts it "
            "and shares it by NFS. A section has one of ``volume_id``, ``efs_id``, ``fsx_id`` and "
            "``bucket``.",
            example="vol-0123456789abcdef0",
        ),
    )
    efs_id: str = field(
        default="",
        metadata=setting(
            matching(r"fs-[0-9a-f]{8,40}", "expected a file system id such as fs-0a1b2c3d"),
            "Id of an EFS file system, which every node mounts. It must have a mount target in the "
            "VPC and zone of the nodes.",
            example="fs-0123456789abcdef0",
        ),
    )
    fsx_id: str = field(
        default="",
        metadata=setting(
            matching(r"fs-[0-9a-f]{8,21}", "expected a file system id such as fs-0a1b2c3d"),
            "Id of an FSx for Lustre file system in the VPC of the nodes, which every node mounts. "
            "The images must be of Ubuntu, or have the Lustre client.",
            example="fs-0123456789abcdef0",
        ),
    )
    bucket: str = field(
        default="",
        metadata=setting(
            matching(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "expected a bucket such as my-data"),
            "Name of an S3 bucket, or alias of an S3 access point, which every node mounts with "
            "Mountpoint for Amazon S3. The nodes need ``instance_profile``. Files cannot be "
            "renamed, appended to or locked: use it for data sets, not for searches.",
            example="my-data",
        ),
    )
    mount_path: str = field(
        metadata=setting(
            matching(r"/\S+", "expected a directory such as /data"),
            "Mount the volume at this directory of all nodes.",
            example="/data",
        )
    )
    partition: int | None = field(
        default=None,
        metadata=setting(
            whole(1),
            "Mount the partition of this number of the EBS volume.",
            example="1",
            unset="the first, or the whole volume if it has no partitions",
        ),
    )
    device: str = field(
        default="",
        metadata=setting(
            matching(r"/dev/[a-z0-9]+", "expected a device such as /dev/sdz"),
            "Attach the EBS volume as this device.",
            example="/dev/sdz",
            unset="the next free device name",
        ),
    )
    tls: bool = field(
        default=True,
        metadata=setting(
            boolean,
            "Encrypt the traffic to EFS, and verify the certificate of its server. ``false`` "
            "mounts by plain NFS 4.1, which is faster.",
            example="false",
        ),
    )
    access_point: str = field(
        default="",
        metadata=setting(
            matching(r"fsap-[0-9a-f]{8,40}", "expected an access point such as fsap-0a1b2c3d"),
            "Mount this access point of the EFS file system. The images must have "
            "amazon-efs-utils.",
            example="fsap-0123456789abcdef0",
        ),
    )
    prefix: str = field(
        default="",
        metadata=setting(
            prefix,
            "Mount only the objects of the bucket whose keys start with this prefix.",
            example="imagenet/",
        ),
    )
    read_only: bool = field(
        default=False,
        metadata=setting(boolean, "Mount it read-only: EFS, FSx or S3.", example="true"),
    )
    mount_options: str = field(
        default="",
        metadata=setting(
            matching(r"[\w.:=/,@%+-]+", "expected options separated by commas, without spaces"),
            "Add these mount options: EFS, FSx or S3.",
            example="noatime",
        ),
    )
    source: str = ""

    @property
    def kind(self) -> Kind:
        """What the volume is."""
        return next((kind for kind in Kind if getattr(self, kind)), Kind.EBS)

    @property
    def id(self) -> str:
        """Id of the volume or file system, or name of the bucket."""
        return str(getattr(self, self.kind))


def disks(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    """Return the EBS volumes, which the master mounts and shares."""
    return tuple(volume for volume in volumes if volume.kind is Kind.EBS)


def file_systems(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    """Return the volumes of EFS, FSx and S3, which every node mounts itself."""
    return tuple(volume for volume in volumes if volume.kind is not Kind.EBS)


def with_devices(volumes: Sequence[Volume]) -> tuple[Volume, ...]:
    """Return the EBS volumes, each with a device; sections of one volume have the same device."""
    volumes = disks(volumes)
    devices = {volume.volume_id: volume.device for volume in volumes if volume.device}
    free = _free_names(devices.values())
    for volume in volumes:
        if volume.volume_id not in devices:
            devices[volume.volume_id] = next(free)
    return tuple(replace(volume, device=devices[volume.volume_id]) for volume in volumes)


def _free_names(taken: Iterable[str]) -> Iterator[str]:
    """Return the device names that AWS recommends for data volumes, except ``taken``."""
    used = set(taken)
    return (f"/dev/sd{letter}" for letter in "fghijklmnop" if f"/dev/sd{letter}" not in used)


def own_problems(volume: Volume, given: Iterable[str]) -> Iterator[str]:
    """Yield the problems of one section; ``given`` are its keys."""
    keys = [kind for kind in Kind if getattr(volume, kind)]
    if len(keys) != 1:
        found = f"has {' and '.join(keys)}" if keys else "says no storage"
        yield f"{found}; set one of {', '.join(Kind)}"
        return
    for key in given:
        if volume.kind not in ONLY_OF.get(key, tuple(Kind)):
            services = " and ".join(kind.service for kind in ONLY_OF[key])
            yield f"{key} is only for {services}, not for {volume.kind.service}"
    if volume.access_point and not volume.tls:
        yield "access_point requires tls = true"
