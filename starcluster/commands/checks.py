"""What every launch is checked for before it costs anything: the same for start and addnode."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from starcluster.aws_check import Facts, aws_problems, look

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.model import Template


def checked(app: App, template: Template, overrides: Mapping[str, str]) -> Facts:
    """Return what AWS has of all that ``template`` names.

    Raises:
        ConfigError: With everything that it has not, by file and line.
    """
    facts = look(app.ec2, template)
    problems = list(aws_problems(template, facts))
    if problems:
        raise app.config.refusal(template.name, problems, overrides)
    return facts
