"""Pack this installation for the master: its code and its libraries, except compiled ones.

The compiled libraries come from the distribution of the master, because those of this machine can
be for another processor or Python. All others are the same on all machines.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from starcluster.errors import StarClusterError

OWN = ("starmint", "starcluster", "starcluster_plugins", "sge_jobs")
LIBRARIES = ("boto3", "click", "cloup", "paramiko", "psutil")
SERVICES = frozenset(
    ("ec2", "efs", "fsx", "pricing", "resource-groups", "s3", "service-quotas", "ssm", "sts")
)
"""AWS services that the balancer calls; the descriptions of 400 others would be 25 MB."""
_COMPILED = (".so", ".pyd", ".dylib")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)")
_EXECUTABLE = """#!/usr/bin/python3 -I
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from starcluster.cli.main import main

main()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What the master needs to run this installation.

    Attributes:
        files: Content by path below the folder of the release.
        programs: Paths of those that can be executed.
        compiled: Names of the libraries that the distribution of the master provides.
    """

    files: Mapping[str, bytes] = field(repr=False)
    programs: frozenset[str] = frozenset()
    compiled: tuple[str, ...] = ()

    def archive(self) -> tuple[bytes, str]:
        """Return a reproducible compressed tar archive, and its digest."""
        plain = io.BytesIO()
        with tarfile.open(fileobj=plain, mode="w") as tar:
            for name, data in sorted(self.files.items()):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                member.mode = 0o700 if name in self.programs else 0o600
                tar.addfile(member, io.BytesIO(data))
        packed = gzip.compress(plain.getvalue(), compresslevel=6, mtime=0)
        return packed, hashlib.sha256(packed).hexdigest()


def pack(extra: Mapping[str, bytes], plugins: Path, modules: tuple[str, ...] = ()) -> Payload:
    """Return the payload of this installation.

    Args:
        extra: More files, such as the config.
        plugins: Directory of the user's plugins.
        modules: Modules of the plugins of the cluster; their installed packages are included.

    Raises:
        StarClusterError: A library or a plugin is not installed as files.
    """
    files = {"starcluster": _EXECUTABLE.encode(), **extra}
    programs = {"starcluster"}
    for package in OWN:
        origin = _place(package)
        files |= dict(_folder(origin, package))
        programs |= {f"lib/{package}/{path.relative_to(origin)}" for path in _programs(origin)}
    files |= {f"lib/{path.relative_to(plugins)}": path.read_bytes() for path in _sources(plugins)}
    names, compiled = [*LIBRARIES, *_distributions_of(modules, plugins)], set[str]()
    seen: set[str] = set()
    while names:
        name = _normal(names.pop())
        if name in seen or name == "starmint":
            continue
        seen.add(name)
        found = _distribution(name)
        if found is None:  # needed on another system or Python only
            continue
        if any(path.suffix in _COMPILED for path in found.files or _modules(found, name)):
            compiled.add(name)
            continue
        files |= dict(_files(found, name))
        names += _requirements(found)
    return Payload(
        files=files,
        programs=frozenset(programs & files.keys()),
        compiled=tuple(sorted(compiled)),
    )


def _programs(origin: Path) -> Iterator[Path]:
    """Yield the files that the setup installs on nodes as programs."""
    yield from (p for p in origin.rglob("*") if p.is_file() and p.stat().st_mode & 0o100)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _distribution(name: str) -> metadata.Distribution | None:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


def _requirements(found: metadata.Distribution) -> Iterator[str]:
    for line in found.requires or ():
        match = _REQUIREMENT.match(line)
        if match and "extra ==" not in line.partition(";")[2]:
            yield match[1]


def _files(found: metadata.Distribution, name: str) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of a library."""
    if not found.files:
        for module in _names(found, name):
            yield from _folder(_place(module), module)
        return
    for path in found.files:
        if path.parts[0] == ".." or path.is_absolute() or not _wanted(path.parts):
            continue
        file = Path(str(found.locate_file(path)))
        if file.is_file():
            yield f"lib/{path.as_posix()}", file.read_bytes()


def _names(found: metadata.Distribution, name: str) -> list[str]:
    """Return the modules of a library whose list of files a package manager keeps elsewhere."""
    return (found.read_text("top_level.txt") or name.replace("-", "_")).split()


def _modules(found: metadata.Distribution, name: str) -> Iterator[Path]:
    for module in _names(found, name):
        place = _place(module)
        yield from place.rglob("*") if place.is_dir() else [place]


def _folder(origin: Path, name: str) -> Iterator[tuple[str, bytes]]:
    if origin.is_file():
        yield f"lib/{origin.name}", origin.read_bytes()
        return
    for path in sorted(origin.rglob("*")):
        parts = (name, *path.relative_to(origin).parts)
        if path.is_file() and _wanted(parts):
            yield "/".join(("lib", *parts)), path.read_bytes()


def _wanted(parts: tuple[str, ...]) -> bool:
    if "__pycache__" in parts or parts[0] in ("bin", "share", "include"):
        return False
    if parts[:2] in (("botocore", "data"), ("boto3", "data")):
        return len(parts) == 3 or parts[2] in SERVICES
    return parts[:2] != ("boto3", "examples")


def _place(module: str) -> Path:
    """Return the directory of a package, or the file of a module."""
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        raise StarClusterError(
            f"cannot copy the module {module} to the master: it is not installed as files",
            "Install starcluster and its plugins with pip.",
        )
    origin = Path(found.origin)
    return origin.parent if origin.name == "__init__.py" else origin


def _sources(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from (path for path in sorted(folder.rglob("*.py")) if path.is_file())


def _distributions_of(modules: tuple[str, ...], plugins: Path) -> Iterator[str]:
    """Yield the installed libraries that contain modules."""
    owners = metadata.packages_distributions()
    for module in modules:
        top = module.partition(".")[0]
        if top in OWN or (plugins / f"{top}.py").is_file() or (plugins / top).is_dir():
            continue
        if top not in owners:
            raise StarClusterError(
                f"cannot copy the plugin {module} to the master: it belongs to no package",
                f"Put it into {plugins}, or install its package with pip.",
            )
        yield from owners[top]
