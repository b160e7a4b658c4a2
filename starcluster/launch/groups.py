"""The security group and placement group of a cluster: create before launch, remove at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import SecurityGroup
from starcluster.config.sections import Permission
from starcluster.config.template import Template
from starcluster.errors import AlreadyThere, NotFound
from starcluster.launch import role
from starcluster.launch.ssh_access import rules_of
from starcluster.launch.tags import cluster_tags
from starcluster.launch.wait import backoff_delays
from starcluster.model import group_name

SECURITY_GROUP = "security group"


def security_group(
    ec2: Ec2,
    name: str,
    template: Template,
    *,
    vpc: str,
    caller: str = "",
    more: Iterable[Permission] = (),
    new: bool = False,
) -> str:
    """Create or reuse the cluster's security group, open its ports; return the id.

    Args:
        new: The cluster is new, so a group that AWS lists has possibly just been deleted.
        more: Ports to open in addition to those of the template.
    """
    for pause in backoff_delays():
        found = [] if new else ec2.security_groups(group_name(name), vpc=vpc)
        if found:
            newest = min(found, key=lambda group: group.joined)  # without rules, or the only one
            # A start that was killed may have skipped this.
            complete(ec2, newest, [*rules_of(template, caller), *more])
            return newest.id
        with contextlib.suppress(AlreadyThere):  # AWS does not list it yet
            group = ec2.create_security_group(
                group_name(name),
                vpc=vpc,
                description=f"starcluster {name}",
                tags=cluster_tags(name, template),
            )
            break
        new = False
        time.sleep(pause)
    ec2.open_ports(group, [*rules_of(template, caller), *more])
    return group


def complete(ec2: Ec2, group: SecurityGroup, wanted: Iterable[Permission]) -> None:
    """Add the rules that a group does not have yet; without any, send no request."""
    if not group.joined:
        ec2.join_members(group.id)
    there = {_rule(permission) for permission in group.permissions}
    ec2.open_ports(group.id, [each for each in wanted if _rule(each) not in there])


def _rule(permission: Permission) -> tuple[str, int, int, str]:
    ports = permission.from_port, permission.to_port
    return permission.ip_protocol, *ports, permission.cidr_ip


def join_outbound(ec2: Ec2, name: str, group: str) -> None:
    """Allow the members of a group all traffic to each other, unless it has the rule."""
    found = ec2.security_groups(group_name(name))
    if not any(each.id == group and each.joined_outbound for each in found):
        ec2.join_members_outbound(group)


def placement_group(ec2: Ec2, name: str, template: Template) -> str:
    """Create the cluster's placement group unless it exists; return its name."""
    group = group_name(name)
    if group not in ec2.placement_groups(group):
        ec2.create_placement_group(group, cluster_tags(name, template))
    return group


def remove_groups(ec2: Ec2, name: str) -> list[str]:
    """Delete the groups of a cluster without instances. Raises AlreadyThere if one is in use."""
    removed = []
    for group in ec2.security_groups(group_name(name)):
        removed += role.remove(ec2, name, group)
        with contextlib.suppress(NotFound):  # AWS's list lags, or another terminate was faster
            ec2.delete_security_group(group.id)
            removed.append(f"{SECURITY_GROUP} {group.name}")
    for placement in ec2.placement_groups(group_name(name)):
        with contextlib.suppress(AlreadyThere, NotFound):
            ec2.delete_placement_group(placement)
            removed.append(f"placement group {placement}")
    return removed
