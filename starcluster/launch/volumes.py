"""Attach the volumes of a template to the master."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import Instance
from starcluster.config import Volume, with_devices
from starcluster.errors import ClusterError

ATTACH_S = 120.0


def attach(
    ec2: Ec2,
    volumes: Sequence[Volume],
    master: Instance,
    progress: Callable[[str, str], None] = lambda alias, what: None,
) -> None:
    """Attach the volumes that are not attached, and wait. Raises ClusterError if one is in use.

    A volume with several sections, one for each of its partitions, is attached once.
    """
    # Of several sections of a volume, the first one names it in messages.
    once = {volume.volume_id: volume for volume in reversed(with_devices(volumes))}
    if not once:
        return
    found = {volume.id: volume for volume in ec2.volumes(list(once))}
    new = []
    for volume in reversed(once.values()):
        there = found[volume.volume_id].instance_id
        if there and there != master.id:
            raise ClusterError(
                f"volume {volume.name} ({volume.volume_id}) is attached to {there}",
                "Stop or terminate the instance that uses it: starcluster listvolumes",
            )
        if not there:
            progress(master.alias, f"attaching {volume.name}")
            ec2.attach_volume(volume.volume_id, master.id, volume.device)
            new.append(volume.volume_id)
    for volume_id in new:
        ec2.wait_volume(volume_id, "in_use", limit_s=ATTACH_S)
