"""The role of a cluster's master: its name, its record, and its end."""

from __future__ import annotations

import hashlib

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import SecurityGroup
from starcluster.errors import AwsError, ClusterError
from starcluster.logger import log
from starcluster.model import TAG_CLUSTER

TAG_ROLE = "starcluster:role"
"""Tag of the security group, which AWS deletes last, so a role is never forgotten."""
TAG_REGION = "starcluster:region"
_LETTERS = 64


def role_name(region: str, cluster: str) -> str:
    """Return the name of the role; IAM has one name space for all regions."""
    name = f"starcluster-{region}-{cluster}"
    if len(name) <= _LETTERS:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: _LETTERS - len(digest) - 1]}-{digest}"


def role_tags(region: str, cluster: str) -> dict[str, str]:
    """Return the tags that make a role that of a cluster."""
    return {TAG_CLUSTER: cluster, TAG_REGION: region}


def remember(ec2: Ec2, group: SecurityGroup, role: str) -> None:
    """Record the role in a tag of the security group; an empty text for none."""
    if group.tags.get(TAG_ROLE, "") != role:
        ec2.tag([group.id], {TAG_ROLE: role})


def remove(ec2: Ec2, cluster: str, group: SecurityGroup) -> list[str]:
    """Delete the role that a security group records; return what was deleted.

    A failure is logged: the cluster must still end, and the role costs nothing.
    """
    role = group.tags.get(TAG_ROLE, "")
    if not role:
        return []
    try:
        return [f"role {role}"] if ec2.delete_role(role, role_tags(ec2.region, cluster)) else []
    except (AwsError, ClusterError) as error:
        what = f"cannot delete role {role}: {error.what}"
        log.warning("%s. Delete it and its instance profile in the IAM console.", what)
        return []
