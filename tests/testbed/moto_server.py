"""moto's server, in which the tags of launch templates can change."""

from moto.ec2.models.launch_templates import LaunchTemplate
from moto.server import main


def follow_tags() -> None:
    """Let a launch template have its current tags; moto copies those of its creation."""
    LaunchTemplate.tags = property(lambda self: self.get_tags(), lambda self, tags: None)


if __name__ == "__main__":
    follow_tags()
    main()
