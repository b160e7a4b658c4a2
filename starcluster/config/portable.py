"""Write the config of one cluster for its master, without credentials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starcluster.config import schema
from starcluster.config import values as reader
from starcluster.config.parsers import is_url
from starcluster.config.sections import AwsSettings
from starcluster.config.syntax import Document, Entry
from starcluster.config.template import Template

_AWS = (
    "aws_endpoint_url",
    "aws_region_host",
    "aws_port",
    "aws_ec2_path",
    "aws_is_secure",
    "aws_validate_certs",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Portable:
    """A config and the files that it names, by path on the other machine."""

    text: str = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The machine that gets the config.

    Attributes:
        cluster: Name of the cluster whose master it is.
        key_location: Its private key for the nodes.
        folder: Its directory for the files that the config names.
    """

    cluster: str
    region: str
    key_location: str
    folder: str


def portable(
    document: Document,
    aws: AwsSettings,
    template: Template,
    overrides: Mapping[str, str],
    target: Target,
) -> Portable:
    """Return the config of one template with the sections that it names.

    It has no access keys and no proxy: the other machine has its own role and network.

    Args:
        overrides: Options of the cluster, by key.
    """
    entries = reader.inherited(document, template.name, []) | reader.given(overrides)
    own = {key: entry.value for key, entry in entries.items() if key != "key_location"}
    files: dict[str, bytes] = {}
    for key, folder, found in _files(template):
        there = {f"{target.folder}/{folder}/{name}": data for name, data in found.items()}
        own[key] = f"{target.folder}/{folder}" if key == "gridengine_packages" else ", ".join(there)
        files |= there
    defaults = AwsSettings()
    settings = {
        name: getattr(aws, name) for name in _AWS if getattr(aws, name) != getattr(defaults, name)
    }
    parts = [
        _section("global", {"master_of": target.cluster}),
        _section("aws info", {"aws_region_name": target.region, **settings}),
        _section(f"key {template.keyname}", {"key_location": target.key_location}),
        *_named(document, entries),
        _section(f"cluster {template.name}", own),
    ]
    return Portable(text="\n".join(parts), files=files)


def _files(template: Template) -> Iterator[tuple[str, str, dict[str, bytes]]]:
    """Yield each key whose value is files, their directory, and their content by name."""
    scripts = template.userdata_scripts
    if scripts:
        named = {f"{n:03d}-{path.name}": path.read_bytes() for n, path in enumerate(scripts)}
        yield "userdata_scripts", "userdata", named
    packages = template.gridengine_packages
    if packages and not is_url(packages):
        found = sorted(Path(packages).glob("*.deb"))
        yield "gridengine_packages", "packages", {path.name: path.read_bytes() for path in found}


def _named(document: Document, entries: Mapping[str, Entry]) -> Iterator[str]:
    """Yield the sections that a template names, except its key."""
    for key in schema.CLUSTER.values():
        if key.refers_to in ("", "key") or key.name not in entries:
            continue
        for name in filter(None, (each.strip() for each in entries[key.name].value.split(","))):
            found = document.of(key.refers_to)[name].entries
            rows = {name: entry.value for name, entry in found.items()}
            yield _section(f"{key.refers_to} {name}", rows)


def _section(title: str, rows: Mapping[str, object]) -> str:
    lines = [f"{name} = {value}" for name, value in rows.items()]
    return "\n".join([f"[{title}]", *lines, ""])
