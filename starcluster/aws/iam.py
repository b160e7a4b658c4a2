"""Instance profiles: the roles that instances can have."""

from __future__ import annotations

from starcluster.aws.client import AwsClient
from starcluster.aws.model import InstanceProfile
from starcluster.errors import PermissionDenied


class Iam(AwsClient):
    """Requests about instance profiles."""

    def instance_profile(self, reference: str) -> InstanceProfile:
        """Return the profile with a name or ARN. Raises NotFound."""
        name = reference.rpartition("/")[2]
        try:
            answer = self.call("iam", "GetInstanceProfile", InstanceProfileName=name)
        except PermissionDenied:
            return InstanceProfile(name=name)
        found = answer["InstanceProfile"]
        return InstanceProfile(
            name=name,
            arn=found["Arn"],
            roles=tuple(role["RoleName"] for role in found["Roles"]),
            role_arns=tuple(role["Arn"] for role in found["Roles"]),
        )
