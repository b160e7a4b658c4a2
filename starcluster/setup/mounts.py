"""What the nodes mount themselves: file systems of EFS, FSx for Lustre and S3; no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from starcluster.config.volume import Kind, Volume, file_systems

MOUNT_S = 300.0
"""Timeout in seconds of one mount, with its probes and retries."""


def before_users(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    """Return the volumes that can contain home directories, so users are created after them."""
    return tuple(volume for volume in file_systems(volumes) if volume.kind is not Kind.S3)


def after_users(volumes: Iterable[Volume]) -> tuple[Volume, ...]:
    """Return the volumes that are mounted for a user of the node."""
    return tuple(volume for volume in file_systems(volumes) if volume.kind is Kind.S3)


def needs(volumes: Iterable[Volume]) -> str:
    """Return what nodes need for these volumes: words of ``tls`` and ``s3``."""
    kinds = ["s3" for volume in volumes if volume.kind is Kind.S3]
    kinds += ["tls" for volume in volumes if volume.kind is Kind.EFS and volume.tls]
    return " ".join(sorted(set(kinds)))


def mount_lines(volumes: Iterable[Volume]) -> str:
    """Return a line for mounts.sh for each volume: KIND ID PATH SOURCE TLS OPTIONS NAME."""
    return "\n".join(_line(volume) for volume in volumes)


def _line(volume: Volume) -> str:
    options = ["ro" if volume.read_only else "rw"]
    if volume.access_point:
        options.append(f"accesspoint={volume.access_point}")
    if volume.mount_options:
        options.append(volume.mount_options)
    source = volume.source
    if volume.kind is Kind.S3:
        source = f"s3://{volume.bucket}/{volume.prefix}"
    words = [
        volume.kind.name.lower(),
        volume.id,
        volume.mount_path.rstrip("/"),
        source or "-",
        "yes" if volume.kind is Kind.EFS and volume.tls else "no",
        ",".join(options),
        volume.name,
    ]
    return " ".join(words)
