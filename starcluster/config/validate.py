"""Check the values of a template against each other, and that its files exist."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from starcluster.config.account import names_reservation
from starcluster.config.network import CALLER
from starcluster.config.parsers import is_url
from starcluster.config.sections import Permission
from starcluster.config.syntax import others_can_read, short
from starcluster.config.template import Template
from starcluster.config.volume import Kind, disks

# A volume mounted here would hide files that the nodes need.
_KEPT = frozenset(
    f"/{name}"
    for name in (
        *("", "bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp"),
        *("usr", "var"),
    )
)


def template_problems(template: Template) -> Iterator[tuple[str, str]]:
    """Yield the key and the text of each problem of ``template``."""
    nodes = template.cluster_size - 1
    named = sum(item.count or 0 for item in template.node_instance_type)
    if named > nodes:
        text = f"names {named} nodes, but cluster_size is {template.cluster_size}"
        yield "node_instance_type", f"{text}: the master and {nodes} others"
    if template.force_spot_master and template.spot_bid is None:
        yield "force_spot_master", "requires spot_bid"
    if names_reservation(template.capacity_reservation):
        if template.spot_bid is not None:
            text = "cannot be combined with spot_bid: a reservation has no spot instances"
            yield "capacity_reservation", text
        if template.placement_group:
            text = "cannot be combined with placement_group: the reservation is outside of the "
            text += "new group, and a Capacity Block places its nodes close together"
            yield "capacity_reservation", text
    if template.subnet_id and template.availability_zone:
        yield "availability_zone", "cannot be combined with subnet_id, which has its own zone"
    if template.cluster_user == "root":
        yield "cluster_user", "root is reserved; choose another name"
    yield from _way_problems(template)
    for script in template.userdata_scripts:
        if not script.is_file():
            yield "userdata_scripts", f"no such file: {short(script)}"
    source = template.gridengine_packages
    if source and not is_url(source) and not Path(source).is_dir():
        yield "gridengine_packages", f"no such directory: {short(Path(source))}"
    yield from _volume_problems(template)
    for permission in template.permissions:
        for text in permission_problems(permission):
            yield "permissions", f"{permission.name}: {text}"


def _way_problems(template: Template) -> Iterator[tuple[str, str]]:
    if not template.ssh_via:
        return
    if template.ssh_proxy_jump:
        yield "ssh_via", "cannot be combined with ssh_proxy_jump"
    if template.ssh_from != (CALLER,):
        yield "ssh_via", "cannot be combined with ssh_from: it opens no port"
    if not template.instance_profile:
        text = "requires instance_profile, whose role has the policy AmazonSSMManagedInstanceCore"
        yield "ssh_via", text


def _volume_problems(template: Template) -> Iterator[tuple[str, str]]:
    for volume in template.volumes:
        path = f"/{volume.mount_path.strip('/')}"
        if path in _KEPT:
            text = f"mount_path = {volume.mount_path} is in use on the nodes"
            yield "volumes", f"{volume.name}: {text}"
        if volume.kind is Kind.S3 and f"{path}/".startswith("/home/"):
            text = "is for home directories, which need locks, renames and file owners; S3 has none"
            yield "volumes", f"{volume.name}: mount_path = {volume.mount_path} {text}"
    given = disks(template.volumes)
    named = {(volume.volume_id, volume.device) for volume in given if volume.device}
    partitions = [f"{volume.volume_id}, partition = {volume.partition or 1}" for volume in given]
    for what, of in (
        ("mount_path", [volume.mount_path for volume in template.volumes]),
        ("volume_id", partitions),
        ("device", [device for _, device in named]),
    ):
        for value, count in Counter(of).items():
            if count > 1:
                yield "volumes", f"duplicate {what} = {value} in {count} volumes"
    for volume_id, count in Counter(volume_id for volume_id, _ in named).items():
        if count > 1:
            yield "volumes", f"{volume_id} has {count} devices; a volume is attached as one device"


def permission_problems(permission: Permission) -> Iterator[str]:
    """Yield the problems of ``permission``."""
    if permission.from_port > permission.to_port:
        yield f"from_port {permission.from_port} is greater than to_port {permission.to_port}"
    if permission.ip_protocol != "icmp" and permission.from_port < 0:
        yield "from_port -1 is only for icmp; for all ports use 0"
    try:
        ipaddress.ip_network(permission.cidr_ip)
    except ValueError as error:
        yield f"cidr_ip: {error}"


def key_file_problem(location: Path) -> str:
    """Return the problem of a private key file, with the command that fixes it; or empty."""
    if not location.is_file():
        return f"no such file: {short(location)}"
    if others_can_read(location):
        return f"other users can read {short(location)}; run: chmod 600 {short(location)}"
    return ""
