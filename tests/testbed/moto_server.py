"""moto's server, in which tags of launch templates change and their versions have user data."""

from __future__ import annotations

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.responses import EC2Response
from moto.ec2.utils import parse_user_data
from moto.server import main


def fix_templates() -> None:
    """Let launch templates have their current tags, and versions with user data."""
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda self, tags: None)
    EC2Response.create_launch_template_version = _new_version


def _new_version(self: Any) -> ActionResult:
    template = self.ec2_backend.get_launch_template(self._get_param("LaunchTemplateId"))
    data = self._get_param("LaunchTemplateData", {})
    data["UserData"] = parse_user_data(self._get_param("LaunchTemplateData.UserData"))
    version = template.create_version(data, "")
    facts = {"LaunchTemplateId": template.id, "VersionNumber": version.number}
    return ActionResult({"LaunchTemplateVersion": facts})


if __name__ == "__main__":
    fix_templates()
    main()
