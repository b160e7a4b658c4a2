"""Launch templates: AWS keeps their names unique, and launches nothing with a deleted one."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from starcluster.aws import responses
from starcluster.aws.client import AwsClient
from starcluster.aws.model import LaunchTemplate
from starcluster.model import TAG_CLUSTER

# A template needs data. This is AWS's default, so that it changes nothing of a launch.
_NEUTRAL = {"Monitoring": {"Enabled": False}}


class Templates(AwsClient):
    """Requests about launch templates."""

    def create_template(self, name: str, tags: Mapping[str, str]) -> str:
        """Create a launch template; return its id. Raises AlreadyThere if the name is taken."""
        answer = self.call(
            "ec2",
            "CreateLaunchTemplate",
            ClientToken=uuid.uuid4().hex,  # botocore can send it twice
            LaunchTemplateName=name,
            LaunchTemplateData=_NEUTRAL,
            TagSpecifications=responses.tag_specifications(tags, "launch-template"),
        )
        return str(answer["LaunchTemplate"]["LaunchTemplateId"])

    def add_version(self, id: str, data: Mapping[str, Any]) -> str:
        """Add a version with other data to a launch template; return its number."""
        answer = self.call(
            "ec2",
            "CreateLaunchTemplateVersion",
            ClientToken=uuid.uuid4().hex,
            LaunchTemplateId=id,
            LaunchTemplateData=dict(data),
        )
        return str(answer["LaunchTemplateVersion"]["VersionNumber"])

    def templates(self, cluster: str = "*") -> list[LaunchTemplate]:
        """Return the launch templates of a cluster, or of all; AWS can omit new ones."""
        filters = [{"Name": f"tag:{TAG_CLUSTER}", "Values": [cluster]}]
        found: list[LaunchTemplate] = []
        more: dict[str, str] = {}
        while True:
            answer = self.call("ec2", "DescribeLaunchTemplates", Filters=filters, **more)
            now = answer["ResponseMetadata"]["HTTPHeaders"].get("date", "")
            for item in answer.get("LaunchTemplates", ()):
                created = item["CreateTime"]
                # Both times are AWS's, so that the clock of this machine does not matter.
                age = (parsedate_to_datetime(now) - created).total_seconds() if now else 0.0
                found.append(
                    LaunchTemplate(
                        id=item["LaunchTemplateId"],
                        name=item["LaunchTemplateName"],
                        created=created,
                        age_s=max(age, 0.0),
                        tags=responses.tags_of(item),
                    )
                )
            if not answer.get("NextToken"):
                return found
            more = {"NextToken": answer["NextToken"]}

    def delete_template(self, id: str) -> None:
        """Delete a launch template. Raises NotFound."""
        self.call("ec2", "DeleteLaunchTemplate", LaunchTemplateId=id)
