"""Give the master of a cluster a role that can change this cluster only, and take it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from starcluster.aws.ec2 import Ec2
from starcluster.aws.model import SecurityGroup
from starcluster.balance.on_master.policy import Scope, policy, policy_text
from starcluster.cluster.cluster import Cluster
from starcluster.config.volume import Kind
from starcluster.errors import AwsError, ClusterError, PermissionDenied
from starcluster.launch import role
from starcluster.model import group_name

_NEW_PROFILE = ("InvalidParameterValue", "IncorrectState", "NoSuchEntity")
# IAM reports a new profile to EC2 after some seconds, rarely after a minute.
PAUSES_S = (1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0)


class Access:
    """The role of the master of one cluster.

    Attributes:
        named: Instance profile that the user names; empty for a role that starcluster makes.
    """

    def __init__(
        self,
        cluster: Cluster,
        named: str = "",
        *,
        pauses_s: Sequence[float] = PAUSES_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cluster, self.named = cluster, named
        self._ec2: Ec2 = cluster.ec2
        self._pauses_s, self._sleep = pauses_s, sleep
        self.profile = named or role.role_name(self._ec2.region, cluster.name)

    def group(self) -> SecurityGroup:
        """Return the security group of the cluster. Raises ClusterError."""
        for found in self._ec2.security_groups(group_name(self.cluster.name)):
            return found
        name = self.cluster.name
        raise ClusterError(
            f"cluster '{name}' has no security group", f"See it: starcluster listclusters {name}"
        )

    def scope(self) -> Scope:
        """Return what the policy names."""
        template, group, caller = self.cluster.template, self.group(), self._ec2.caller()
        default = template.node_instance_type[-1]
        image = default.image_id or template.node_image_id
        nodes = ""
        if template.instance_profile:
            found = self._ec2.instance_profile(template.instance_profile)
            nodes = (*found.role_arns, f"arn:{caller.partition}:iam::{caller.account}:role/*")[0]
        return Scope(
            partition=caller.partition,
            region=self._ec2.region,
            account=caller.account,
            cluster=self.cluster.name,
            group=group.id,
            vpc=group.vpc_id,
            keyname=template.keyname,
            types=(default.instance_type, *template.fallback_instance_types),
            parameters=(image,) if image.startswith("/") else (),
            buckets=tuple(each.bucket for each in template.volumes if each.kind is Kind.S3),
            profile_role=nodes,
        )

    def check(self) -> None:
        """Raise ClusterError if jobs could use the role, or the master has another profile."""
        if self.cluster.template.metadata_access != "root":
            raise ClusterError(
                f"with metadata_access = all, the jobs of '{self.cluster.name}' could use it",
                "Remove metadata_access from the template, then set up the nodes: "
                f"starcluster start -x {self.cluster.name}",
            )
        has = self._ec2.association(self.cluster.master.id)
        if has is None or has.profile == self.profile:
            return
        name = self.cluster.name
        raise ClusterError(
            f"the master has the instance profile {has.profile}, and EC2 allows only one",
            "Add the policy that this prints to the role of that profile:\n"
            f"  starcluster balance --install --dry-run {name}\n"
            f"Then name it: starcluster balance --install --instance-profile {has.profile} {name}",
        )

    def give(self) -> None:
        """Make or update the role, and give it to the master; a rerun continues.

        Raises:
            PermissionDenied: These credentials cannot make roles; the fix has the policy.
        """
        if not self.named:
            scope = self.scope()
            tags = role.role_tags(self._ec2.region, self.cluster.name)
            role.remember(self._ec2, self.group(), self.profile)  # terminate deletes the role
            try:
                self._ec2.put_role(self.profile, policy(scope), tags)
            except PermissionDenied as error:
                raise PermissionDenied(
                    error.what,
                    _without_role(self.cluster.name, scope),
                    code=error.code,
                    operation=error.operation,
                ) from error
        self._associate()

    def _associate(self) -> None:
        master = self.cluster.master.id
        for pause in (*self._pauses_s, None):
            has = self._ec2.association(master)
            if has is not None and has.profile == self.profile:
                return
            try:
                self._ec2.associate(master, self.profile)
            except AwsError as error:
                if error.code not in _NEW_PROFILE or pause is None:
                    raise
                self._sleep(pause)

    def take(self) -> list[str]:
        """Take the role from the master and delete it; return what was deleted.

        An instance profile that the user named stays.
        """
        group = self.group()
        made = group.tags.get(role.TAG_ROLE, "")
        if not made:
            return []
        for instance in self.cluster.instances:
            has = self._ec2.association(instance.id)
            if has is not None and has.profile == made:
                self._ec2.disassociate(has)
        removed = role.remove(self._ec2, self.cluster.name, group)
        role.remember(self._ec2, group, "")
        return removed


def _without_role(cluster: str, scope: Scope) -> str:
    return (
        "Ask the administrator of the AWS account for an instance profile whose role EC2 can "
        "assume (service ec2.amazonaws.com) and which has this policy:\n"
        f"{policy_text(scope)}\n"
        f"Then name it: starcluster balance --install --instance-profile NAME {cluster}"
    )
