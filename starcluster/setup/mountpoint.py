"""Install Mountpoint for Amazon S3 on nodes, from AWS's package with a verified signature."""

from __future__ import annotations

import functools
import http.client
import io
import tarfile
from pathlib import Path

from starcluster.errors import StarClusterError
from starcluster.node.node import Node
from starcluster.setup.packages import CACHE, INSTALL_S, UNPACK, keep, read
from starcluster.setup.scripts import script

VERSION = "1.21.0"
RELEASES = "https://s3.amazonaws.com/mountpoint-s3-release"
FINGERPRINTS = (
    "8AEFE705EBE329C0948C75A66F1C3B3AEF4B030B",
    "673FE4061506BB469A0EF857BE397A52B086DA5A",
)
"""Keys of AWS; https://docs.aws.amazon.com/AmazonS3/latest/userguide/mountpoint-installation.html"""
_MACHINES = {"x86_64": "x86_64", "aarch64": "arm64"}
_MOST_BYTES = 64 << 20


def install_mountpoint(node: Node) -> None:
    """Install mount-s3 on a node that does not have it.

    Raises:
        StarClusterError: AWS has no package for the node, or its signature is not AWS's.
    """
    if node.ssh.which("mount-s3"):
        return
    machine = node.ssh.checked(["uname", "-m"]).strip()
    if machine not in _MACHINES:
        raise StarClusterError(f"AWS has no Mountpoint for Amazon S3 for {machine}")
    packed, file = _download(_MACHINES[machine])
    folder = node.ssh.checked(["sh", "-c", UNPACK], stdin=packed, timeout_s=INSTALL_S)
    values = {"FOLDER": folder.strip(), "FILE": file, "FINGERPRINTS": " ".join(FINGERPRINTS)}
    argv = ["sh", "-s", "mountpoint"]
    node.ssh.checked(argv, stdin=script("apt+mountpoint", values), timeout_s=INSTALL_S)


@functools.cache
def _download(machine: str) -> tuple[bytes, str]:
    """Return a tar archive of package, signature and keys, and the name of the package."""
    file = f"mount-s3-{VERSION}-{machine}.deb"
    folder = f"{VERSION}/{machine}"
    sources = {
        file: f"{RELEASES}/{folder}/{file}",
        f"{file}.asc": f"{RELEASES}/{folder}/{file}.asc",
        "KEYS": f"{RELEASES}/public_keys/KEYS",
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, url in sources.items():
            data = _cached(CACHE.expanduser() / "mount-s3" / name, url)
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue(), file


def _cached(path: Path, url: str) -> bytes:
    if path.is_file():
        return path.read_bytes()  # the nodes verify it
    try:
        data = read(url, _MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise StarClusterError(
            f"cannot fetch Mountpoint for Amazon S3: {url}: {error}",
            f"Put the file into {path.parent}, or use an image that has mount-s3.",
        ) from error
    keep(path, data)
    return data
