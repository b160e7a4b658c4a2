"""The security group and placement group of a cluster: create before launch, remove at the end."""

from __future__ import annotations

import contextlib
import time

from starcluster.aws.ec2 import Ec2
from starcluster.config.template import Template
from starcluster.errors import AlreadyThere, NotFound
from starcluster.launch import plan
from starcluster.launch.wait import backoff_delays
from starcluster.model import TAG_CLUSTER, group_name

SECURITY_GROUP = "security group"


def security_group(ec2: Ec2, name: str, template: Template, *, vpc: str) -> str:
    """Create or reuse the cluster's security group, open the template's ports; return the id."""
    for pause in backoff_delays():
        found = ec2.security_groups(group_name(name), vpc=vpc)
        if found:
            group = found[0].id
            ec2.join_members(group)  # a start that was killed may have skipped this
            break
        with contextlib.suppress(AlreadyThere):  # AWS does not list it yet
            group = ec2.create_security_group(
                group_name(name),
                vpc=vpc,
                description=f"starcluster {name}",
                tags={TAG_CLUSTER: name},
            )
            break
        time.sleep(pause)
    ec2.open_ports(group, plan.permissions(template))
    return group


def placement_group(ec2: Ec2, name: str, template: Template) -> str:
    """Create the cluster's placement group if needed; return its name, or an empty string."""
    if not template.placement_group:
        return ""
    group = group_name(name)
    if group not in ec2.placement_groups(group):
        ec2.create_placement_group(group)
    return group


def remove_groups(ec2: Ec2, name: str) -> list[str]:
    """Delete the groups of a cluster without instances. Raises AlreadyThere if one is in use."""
    removed = []
    for group in ec2.security_groups(group_name(name)):
        with contextlib.suppress(NotFound):  # AWS's list lags, or another terminate was faster
            ec2.delete_security_group(group.id)
            removed.append(f"{SECURITY_GROUP} {group.name}")
    for placement in ec2.placement_groups(group_name(name)):
        with contextlib.suppress(AlreadyThere, NotFound):
            ec2.delete_placement_group(placement)
            removed.append(f"placement group {placement}")
    return removed
