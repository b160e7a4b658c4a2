"""The security group and placement group of a cluster: create before launch, remove at the end."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

from starcluster.aws.ec2 import Ec2
from starcluster.config.template import Template
from starcluster.errors import AlreadyThere, NotFound
from starcluster.launch import plan
from starcluster.model import TAG_CLUSTER, group_name


def security_group(ec2: Ec2, name: str, template: Template, *, vpc: str) -> str:
    """Create or reuse the cluster's security group, open the template's ports; return the id."""
    found = ec2.security_groups(group_name(name), vpc=vpc)
    if found:
        group = found[0].id
        ec2.join_members(group)  # a start that was killed may have skipped this
    else:
        group = ec2.create_security_group(
            group_name(name),
            vpc=vpc,
            description=f"starcluster {name}",
            tags={TAG_CLUSTER: name},
        )
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
            removed.append(f"security group {group.name}")
    for placement in ec2.placement_groups(group_name(name)):
        with contextlib.suppress(AlreadyThere, NotFound):
            ec2.delete_placement_group(placement)
            removed.append(f"placement group {placement}")
    return removed


def remove_groups_soon(
    ec2: Ec2, name: str, *, limit_s: float, delays: Iterator[float]
) -> list[str]:
    """Delete the groups; retry while AWS reports them in use after the instances terminated."""
    deadline = time.monotonic() + limit_s
    for pause in delays:
        try:
            return remove_groups(ec2, name)
        except AlreadyThere:
            if time.monotonic() > deadline:
                raise
            time.sleep(pause)
    raise AssertionError
