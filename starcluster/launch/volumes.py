"""Attach the volumes of a template to the master."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.config.sections import Volume
from starcluster.errors import ClusterError

ATTACH_S = 120.0


def attach(
    ec2: Ec2,
    volumes: Sequence[Volume],
    master: Instance,
    progress: Callable[[str, str], None] = lambda alias, what: None,
) -> None:
    """Attach the volumes that are not attached, and wait. Raises ClusterError if one is in use."""
    found = {volume.id: volume for volume in ec2.volumes([volume.volume_id for volume in volumes])}
    names = device_names([volume.device for volume in volumes])
    new = []
    for volume in volumes:
        there = found[volume.volume_id].instance_id
        if there and there != master.id:
            raise ClusterError(
                f"volume {volume.name} ({volume.volume_id}) is attached to {there}",
                "Stop or terminate the instance that uses it: starcluster listvolumes",
            )
        device = volume.device or next(names)
        if not there:
            progress(master.alias, f"attaching {volume.name}")
            ec2.attach_volume(volume.volume_id, master.id, device)
            new.append(volume.volume_id)
    for volume_id in new:
        ec2.wait_volume(volume_id, "in_use", limit_s=ATTACH_S)


def device_names(taken: Iterable[str]) -> Iterator[str]:
    """Yield the device names that AWS recommends for data volumes, except ``taken``."""
    used = set(taken)
    return (f"/dev/sd{letter}" for letter in "fghijklmnop" if f"/dev/sd{letter}" not in used)
