"""Device names of the volumes of a template."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from starcluster.config.sections import Volume


def with_devices(volumes: Sequence[Volume]) -> tuple[Volume, ...]:
    """Return the volumes, each with a device; sections of one volume have the same device."""
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
