"""moto's server with complete launch templates (tags, user data) and with tags of snapshots."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import EC2Backend
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix, parse_user_data
from moto.server import main


def fix_templates() -> None:
    """Give launch templates their tags and user data, and snapshots of images their tags."""
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda self, tags: None)
    EC2Response.create_launch_template_version = _new_version
    EC2Backend.create_image = _with_tagged_snapshot(EC2Backend.create_image)


def find_tags_by_id() -> None:
    """Look up the tags of a resource; moto compares its identifier with those of all resources."""
    TaggedEC2Resource.get_tags = _tags_of


def _tags_of(resource: Any) -> list[dict[str, str]]:
    kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(resource.id), "") if resource.id else ""
    tags = dict(resource.ec2_backend.tags.get(resource.id, {}))
    return [
        {"resource_id": resource.id, "key": key, "value": value, "resource_type": kind}
        for key, value in tags.items()
    ]


def connect_default_vpc() -> None:
    """Give default VPCs the internet gateway and the route that AWS gives them."""
    EC2Backend.__init__ = _with_gateway(EC2Backend.__init__)


def _with_gateway(original: Any) -> Any:
    def call(self: Any, *args: Any, **more: Any) -> None:
        original(self, *args, **more)
        if self.default_vpc is not None:
            gateway = self.create_internet_gateway()
            self.attach_internet_gateway(gateway.id, self.default_vpc.id)
            (main,) = self.describe_route_tables(
                filters={"vpc-id": [self.default_vpc.id], "association.main": ["true"]}
            )
            self.create_route(main.id, "0.0.0.0/0", gateway_id=gateway.id)

    return call


def _new_version(self: Any) -> ActionResult:
    template = self.ec2_backend.get_launch_template(self._get_param("LaunchTemplateId"))
    data = self._get_param("LaunchTemplateData", {})
    data["UserData"] = parse_user_data(self._get_param("LaunchTemplateData.UserData"))
    version = template.create_version(data, "")
    facts = {"LaunchTemplateId": template.id, "VersionNumber": version.number}
    return ActionResult({"LaunchTemplateVersion": facts})


def _with_tagged_snapshot(original: Any) -> Any:
    def call(self: Any, id: str, name: str, description: str, tag_specifications: Any) -> Any:
        others = [each for each in tag_specifications if each["ResourceType"] != "snapshot"]
        image = original(self, id, name, description, others)
        for each in tag_specifications:
            if each["ResourceType"] == "snapshot":
                tags = {tag["Key"]: tag["Value"] for tag in each["Tags"]}
                self.create_tags([image.ebs_snapshot.id], tags)
        return image

    return call


if __name__ == "__main__":
    fix_templates()
    find_tags_by_id()
    connect_default_vpc()
    main()
