"""Grid Engine packages that work where those of the distribution crash, as on Ubuntu.

On Ubuntu 22.04, 24.04 and 26.04, spooldefaults and sge_qmaster end with a segmentation fault. The
packages of Debian 12, the same version of Grid Engine, work there.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from sge_jobs.errors import QueueUnreachable, SgeJobsError
from sge_jobs.node.spooldefaults import spooldefaults_crash

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True, kw_only=True)
class DebianPackage:
    """A package file of Debian; ``size`` in bytes, ``architecture`` in dpkg's words.

    Attributes:
        folder: Its folder in ``pool/main`` of Debian's archive.
    """

    name: str
    version: str
    architecture: str
    size: int
    sha256: str
    folder: str = "g/gridengine"

    @property
    def file(self) -> str:
        """File name in Debian's archive."""
        return f"{self.name}_{self.version}_{self.architecture}.deb"


def _packages(*rows: tuple[str, str, str, int, str]) -> tuple[DebianPackage, ...]:
    return tuple(
        DebianPackage(
            name=f"gridengine-{part}",
            version=f"8.1.9+dfsg-{revision}",
            architecture=architecture,
            size=size,
            sha256=digest,
        )
        for part, revision, architecture, size, digest in rows
    )


# Size and SHA-256 from dists/bookworm/main/binary-*/Packages, which Debian signs.
DEBIAN_PACKAGES = _packages(
    ("common", "10", "all", 446980,
     "224aa23c8f835e9834bc9d39ec8e6eda0f7ce23e428654a74bd4e62386eaa989"),
    ("client", "10+b1", "amd64", 5935092,
     "292f6bd341848093c011aacf8034e3d938be09e020e3b0dd429ec6fa591c2224"),
    ("exec", "10+b1", "amd64", 1008480,
     "6055c9860fbc833452233f647ad4de8a61dde8b19952b715891fe7dbde4f144d"),
    ("master", "10+b1", "amd64", 1205056,
     "7c69a30e04a289acf45ff95ceb88b43b10978547bc061d96a01754ef9a30e733"),
    ("client", "10+b1", "arm64", 5621804,
     "1e7246782b17a894851dac7d14f5fd044f17051d708ad0a48ddbf9c43102503c"),
    ("exec", "10+b1", "arm64", 936240,
     "91e84fe5384b1b6f8269444bb6c6c13a150ff27b1abe65a68c66820aa05a0213"),
    ("master", "10+b1", "arm64", 1101276,
     "ea6f1bedcc37c59329ff809981b593e4bc9e4e80514a238246d69b917a5b56b9"),
)  # fmt: skip
"""Grid Engine of Debian 12, for amd64 and arm64."""

_HWLOC = "2.7.1"
HWLOC_PACKAGES = tuple(
    DebianPackage(
        name="libhwloc15",
        version="2.9.0-1",
        architecture=architecture,
        size=size,
        sha256=digest,
        folder="h/hwloc",
    )
    for architecture, size, digest in (
        ("amd64", 153644, "4e7194b5d9adbb1a7d11a9501a4be4a4fa22876b69c73b7998056f552962c0e4"),
        ("arm64", 132952, "5e15e107581df5fac0cbaba9b3e355826eec6234966064d0faa921633e8e3410"),
    )
)
"""A library that they need and that Ubuntu 22.04 has in an older version than 2.7.1."""

DEBIAN_MIRRORS = (
    "http://deb.debian.org/debian/pool/main",
    "https://snapshot.debian.org/archive/debian/20250520T000000Z/pool/main",
)
"""Addresses of their folders; the second one keeps them when Debian 12 has left the first."""


def explain(error: SgeJobsError) -> SgeJobsError:
    """Return the error to report: another one if Grid Engine crashes on this machine."""
    crash = spooldefaults_crash() if isinstance(error, QueueUnreachable) else ""
    if not crash:
        return error
    return QueueUnreachable(
        f"{error.what}\nGrid Engine crashes on this machine: spooldefaults ended with {crash}."
        " The packages of this distribution are broken.",
        f"Install those of Debian 12. Run as root, on each host:\n{install_commands()}\n"
        f"Then create the cell on the master, and rerun this command:\n{_NEW_CELL}",
    )


_NEW_CELL = """\
spool=/var/spool/gridengine
mv $spool/spooldb $spool/spooldb.crashed
install -d -o sgeadmin -g sgeadmin $spool/spooldb
setpriv --reuid=sgeadmin --regid=sgeadmin --init-groups \\
    /usr/share/gridengine/scripts/init_cluster /var/lib/gridengine default $spool/spooldb sgeadmin
service gridengine-master restart"""


def install_commands(architecture: str = "") -> str:
    """Return shell commands that install the packages of Debian 12 after a check of SHA-256.

    Args:
        architecture: ``amd64`` or ``arm64``. Default: that of this machine.
    """
    machine = platform.machine()
    wanted = ("all", architecture or _ARCHITECTURES.get(machine, machine))
    packages = [package for package in DEBIAN_PACKAGES if package.architecture in wanted]
    hwloc = next((each for each in HWLOC_PACKAGES if each.architecture in wanted), None)
    gets = "".join(f"get {_path(package)} {package.sha256} &&\n" for package in packages)
    if hwloc is not None:
        installed = "$(dpkg-query -W -f '${Version}' libhwloc15 2>/dev/null)"
        newer = f'dpkg --compare-versions "{installed}" ge {_HWLOC}'
        gets += f"{{ {newer} || get {_path(hwloc)} {hwloc.sha256}; }} &&\n"
    names = " ".join(package.name for package in packages)
    first, second = DEBIAN_MIRRORS
    return f"""\
load() {{ /usr/lib/apt/apt-helper download-file "$1/$2" "${{2##*/}}" "SHA256:$3"; }}
get() {{ load {first} $1 $2 || load {second} $1 $2; }}
cd "$(mktemp -d)" && chmod 755 . &&
{gets}apt-get install -y --allow-downgrades ./*.deb && apt-mark hold {names}"""


def _path(package: DebianPackage) -> str:
    return f"{package.folder}/{package.file}"
