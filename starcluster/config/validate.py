"""What is wrong with a template that no single value shows; pure, but for the key's file."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from starcluster.config.sections import Permission
from starcluster.config.syntax import others_can_read, short
from starcluster.config.template import Template

# Where a volume would hide what the nodes need.
_KEPT = frozenset(
    f"/{name}"
    for name in (
        *("", "bin", "boot", "dev", "etc", "lib", "proc", "root", "run", "sbin", "sys", "tmp"),
        *("usr", "var"),
    )
)


def template_problems(template: Template) -> Iterator[tuple[str, str]]:
    """Yield key and text of each problem among the values of ``template``."""
    nodes = template.cluster_size - 1
    named = sum(item.count or 0 for item in template.node_instance_type)
    if named > nodes:
        text = f"names {named} nodes, but cluster_size is {template.cluster_size}"
        yield "node_instance_type", f"{text}: the master and {nodes}"
    if template.force_spot_master and template.spot_bid is None:
        yield "force_spot_master", "needs spot_bid"
    if template.subnet_id and template.availability_zone:
        yield "availability_zone", "a subnet_id has its own zone: give one of the two"
    if template.cluster_user == "root":
        yield "cluster_user", "root has an account already: give another name"
    for script in template.userdata_scripts:
        if not script.is_file():
            yield "userdata_scripts", f"there is no file {short(script)}"
    yield from _volume_problems(template)
    for permission in template.permissions:
        for text in permission_problems(permission):
            yield "permissions", f"{permission.name}: {text}"


def _volume_problems(template: Template) -> Iterator[tuple[str, str]]:
    for volume in template.volumes:
        if f"/{volume.mount_path.strip('/')}" in _KEPT:
            yield "volumes", f"{volume.name}: mount_path = {volume.mount_path} is in use by nodes"
    for what, of in (
        ("mount_path", [volume.mount_path for volume in template.volumes]),
        ("volume_id", [volume.volume_id for volume in template.volumes if not volume.partition]),
        ("device", [volume.device for volume in template.volumes if volume.device]),
    ):
        for value, count in Counter(of).items():
            if count > 1:
                yield "volumes", f"{count} of them have {what} = {value}"


def permission_problems(permission: Permission) -> Iterator[str]:
    """Yield what is wrong with ``permission``."""
    if permission.from_port > permission.to_port:
        yield f"from_port {permission.from_port} is above to_port {permission.to_port}"
    if permission.ip_protocol != "icmp" and permission.from_port < 0:
        yield "from_port -1 means every kind of icmp: give 0 for every port"
    try:
        ipaddress.ip_network(permission.cidr_ip)
    except ValueError as error:
        yield f"cidr_ip: {error}"


def key_file_problem(location: Path) -> str:
    """Return what is wrong with a private key's file, with the command that fixes it; or empty."""
    if not location.is_file():
        return f"there is no file {short(location)}"
    if others_can_read(location):
        return f"others can read {short(location)}; run: chmod 600 {short(location)}"
    return ""
