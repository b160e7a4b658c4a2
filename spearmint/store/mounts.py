"""The file system that a directory is on."""

from __future__ import annotations

from pathlib import Path

import psutil

_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p", "afs")


def is_on_network(path: Path) -> bool:
    """Return whether ``path`` is on a network file system."""
    return _mount_of(path)[1].startswith(_NETWORK)


def is_in_bucket(path: Path) -> bool:
    """Return whether ``path`` is in an S3 bucket, mounted by Mountpoint for Amazon S3."""
    return _mount_of(path)[0] == "mountpoint-s3"


def _mount_of(path: Path) -> tuple[str, str]:
    """Return device and type of the file system that has ``path``."""
    parents = (path.absolute(), *path.absolute().parents)
    parts = psutil.disk_partitions(all=True)
    mounts = {part.mountpoint: (part.device, part.fstype) for part in parts}
    return next((mounts[str(parent)] for parent in parents if str(parent) in mounts), ("", ""))
