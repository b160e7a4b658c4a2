"""Replace Grid Engine packages that crash, as those of Ubuntu do, by pinned ones of Debian 12."""

from __future__ import annotations

import hashlib
import http.client
import io
import os
import tarfile
import tempfile
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sge_jobs import DEBIAN_MIRRORS, DEBIAN_PACKAGES, HWLOC_PACKAGES, DebianPackage
from starcluster.config.parsers import is_url
from starcluster.errors import StarClusterError
from starcluster.logger import log
from starcluster.node.node import Node
from starcluster.setup.scripts import script
from starcluster.setup.tools import TOOLS

CACHE = Path("~/.starcluster/packages")
_SILENCE_S, _FETCH_S = 30, 600
_CHUNK = 1 << 16
_RETRY_S = 60
INSTALL_S = 1800.0  # includes the locks of other programs: apt.sh waits
UNPACK = 'set -eu; folder=$(mktemp -d); chmod 755 "$folder"; tar -xf - -C "$folder"; echo "$folder"'
_FIX = "Set gridengine_packages to a directory or URL that has the file"


def replace_packages(node: Node, found: Mapping[str, Sequence[str]], source: str = "") -> None:
    """Install Debian 12's Grid Engine packages on a node whose own crash, and hold them.

    Args:
        found: Facts of prepare.sh: ``crash`` (the signal), ``architecture`` and ``package``, the
            packages to replace.
        source: Directory or URL of the files. Default: Debian's mirrors.

    Raises:
        StarClusterError: A file is missing or has another SHA-256, or apt-get failed. The packages
            of the node did not change.
    """
    (crash,), (architecture,), names = found["crash"], found["architecture"], found["package"]
    log.info(
        "%s: Grid Engine of this image crashes (spooldefaults: %s); installing that of Debian 12",
        node.alias,
        crash,
    )
    packages = _needed(architecture, names)
    files = _downloads.get(packages, source)
    folder = node.ssh.checked(["sh", "-c", UNPACK], stdin=_tar(files), timeout_s=INSTALL_S)
    values = {
        "FOLDER": folder.strip(),
        "DIGESTS": "\n".join(f"{package.sha256}  {package.file}" for package in packages),
        "NAMES": " ".join(each.name for each in packages if each in DEBIAN_PACKAGES),
        "TOOLS": TOOLS,
    }
    argv = ["sh", "-s", "gridengine"]
    node.ssh.checked(argv, stdin=script("apt+gridengine", values), timeout_s=INSTALL_S)


class _Downloads:
    """One download for all nodes of a cluster; a failure is also for all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failure: tuple[float, str, StarClusterError] | None = None

    def get(self, packages: Sequence[DebianPackage], source: str) -> dict[DebianPackage, bytes]:
        """Return the content of each package; raises like :func:`fetch`."""
        with self._lock:
            if self._failure is not None:
                at, of, error = self._failure
                if of == source and time.monotonic() < at + _RETRY_S:
                    raise error
            try:
                return {package: fetch(package, source) for package in packages}
            except StarClusterError as error:
                self._failure = time.monotonic(), source, error
                raise


_downloads = _Downloads()


def _needed(architecture: str, names: Iterable[str]) -> list[DebianPackage]:
    found = [
        package
        for package in (*DEBIAN_PACKAGES, *HWLOC_PACKAGES)
        if package.name in names and package.architecture in ("all", architecture)
    ]
    if {package.name for package in found} != set(names):
        raise StarClusterError(
            f"Grid Engine of this image crashes, and there is no replacement for {architecture}",
            "Use an image of Debian 12 or 13.",
        )
    return found


def fetch(package: DebianPackage, source: str = "", cache: Path = CACHE) -> bytes:
    """Return the verified content of a package; download it once.

    Args:
        source: Directory or URL of the file. Default: Debian's mirrors.

    Raises:
        StarClusterError: No source has the file with the right SHA-256.
    """
    kept = cache.expanduser() / package.file
    if kept.is_file() and _digest(data := kept.read_bytes()) == package.sha256:
        return data
    problems = []
    mirrors = [f"{mirror.rstrip('/')}/{package.folder}" for mirror in DEBIAN_MIRRORS]
    for place in [source] if source else mirrors:
        where = f"{place.rstrip('/')}/{package.file}"
        try:
            data = read(where, package.size)
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
            problems.append(f"{where}: {reason}")
            continue
        if _digest(data) == package.sha256:
            keep(kept, data)
            return data
        problems.append(f"{where}: wrong SHA-256 {_digest(data)}, expected {package.sha256}")
    raise StarClusterError(f"cannot fetch a package of Debian 12: {'; '.join(problems)}. {_FIX}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def read(where: str, size: int) -> bytes:
    """Read a file or URL, at most one byte more than ``size``."""
    if not is_url(where):
        with Path(where).open("rb") as file:
            return file.read(size + 1)
    scheme, _, rest = where.partition("://")
    url = f"{scheme}://{urllib.parse.quote(rest, safe='/:[]%')}"  # S3 reads "+" as a space
    deadline = time.monotonic() + _FETCH_S
    data = b""
    with urllib.request.urlopen(url, timeout=_SILENCE_S) as answer:  # noqa: S310 - only http(s)
        while len(data) <= size and (part := answer.read1(_CHUNK)):
            data += part
            if time.monotonic() > deadline:
                raise TimeoutError(f"incomplete after {_FETCH_S} s")
    return data


def keep(path: Path, data: bytes) -> None:
    """Write a file at once, with its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(number, "wb") as file:
        file.write(data)
    Path(name).replace(path)


def _tar(files: Mapping[DebianPackage, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for package, data in files.items():
            member = tarfile.TarInfo(package.file)
            member.size, member.mode = len(data), 0o644
            tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
