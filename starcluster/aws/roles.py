"""Roles of IAM for instances, and the instances that have them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.instances import as_filters
from starcluster.aws.model import Association, Caller
from starcluster.errors import AlreadyThere, ClusterError, NotFound

ROLE_PATH = "/starcluster/"
"""Path of the roles and instance profiles; policies can allow these only."""
POLICY = "starcluster"
_TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "ec2.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


class Roles(AwsClient):
    """Requests about roles of instances; a role and its instance profile have the same name."""

    def caller(self) -> Caller:
        """Return the account of the credentials."""
        answer = self.call("sts", "GetCallerIdentity")
        return Caller(
            account=str(answer["Account"]), partition=str(answer["Arn"]).split(":")[1] or "aws"
        )

    def put_role(self, name: str, policy: Mapping[str, Any], tags: Mapping[str, str]) -> None:
        """Create or update a role and its instance profile.

        Raises:
            ClusterError: A role of this name has other tags.
        """
        words = responses.tag_list(tags)
        try:
            self.call(
                "iam",
                "CreateRole",
                RoleName=name,
                Path=ROLE_PATH,
                AssumeRolePolicyDocument=json.dumps(_TRUST),
                Tags=words,
            )
        except AlreadyThere:
            self._require_mine(name, tags)
        self.call(
            "iam",
            "PutRolePolicy",
            RoleName=name,
            PolicyName=POLICY,
            PolicyDocument=json.dumps(policy),
        )
        with contextlib.suppress(AlreadyThere):
            self.call(
                "iam", "CreateInstanceProfile", InstanceProfileName=name, Path=ROLE_PATH, Tags=words
            )
        if name not in self._roles_of(name):
            self.call("iam", "AddRoleToInstanceProfile", InstanceProfileName=name, RoleName=name)

    def delete_role(self, name: str, tags: Mapping[str, str]) -> bool:
        """Delete a role and its instance profile; return False if neither exists.

        Raises:
            ClusterError: A role of this name has other tags.
        """
        found = False
        with contextlib.suppress(NotFound):
            for role in self._roles_of(name):
                self.call(
                    "iam", "RemoveRoleFromInstanceProfile", InstanceProfileName=name, RoleName=role
                )
            self.call("iam", "DeleteInstanceProfile", InstanceProfileName=name)
            found = True
        with contextlib.suppress(NotFound):
            self._require_mine(name, tags)
            with contextlib.suppress(NotFound):
                self.call("iam", "DeleteRolePolicy", RoleName=name, PolicyName=POLICY)
            self.call("iam", "DeleteRole", RoleName=name)
            found = True
        return found

    def _roles_of(self, profile: str) -> list[str]:
        answer = self.call("iam", "GetInstanceProfile", InstanceProfileName=profile)
        return [str(role["RoleName"]) for role in answer["InstanceProfile"]["Roles"]]

    def _require_mine(self, name: str, tags: Mapping[str, str]) -> None:
        has = responses.tags_of(self.call("iam", "GetRole", RoleName=name)["Role"])
        if not tags.items() <= has.items():
            raise ClusterError(
                f"role {name} exists, and is not a role of this cluster",
                f"See it: aws iam get-role --role-name {name}",
            )

    def association(self, instance: str) -> Association | None:
        """Return the instance profile of an instance; None if it has none."""
        filters = as_filters({"instance-id": [instance], "state": ["associating", "associated"]})
        answer = self.call("ec2", "DescribeIamInstanceProfileAssociations", Filters=filters)
        for row in answer.get("IamInstanceProfileAssociations", ()):
            name = str(row["IamInstanceProfile"]["Arn"]).rpartition("/")[2]
            return Association(id=row["AssociationId"], profile=name)
        return None

    def associate(self, instance: str, profile: str) -> None:
        """Give a running instance an instance profile. EC2 can refuse one that is new."""
        self.call(
            "ec2",
            "AssociateIamInstanceProfile",
            InstanceId=instance,
            IamInstanceProfile={"Name": profile},
        )

    def disassociate(self, association: Association) -> None:
        """Take the instance profile from an instance."""
        with contextlib.suppress(NotFound):
            self.call("ec2", "DisassociateIamInstanceProfile", AssociationId=association.id)
