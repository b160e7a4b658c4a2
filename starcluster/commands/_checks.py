"""What every launch is checked for before it costs anything: the same for start and addnode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from starcluster.config.syntax import short
from starcluster.errors import SshError
from starcluster.launch.preflight import Facts, aws_problems, look
from starcluster.node.shell import public_half

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.model import Template


def checked(app: App, template: Template, overrides: Mapping[str, str]) -> Facts:
    """Return what AWS has of all that ``template`` names.

    Raises:
        ConfigError: With everything that it has not, by file and line.
    """
    facts = look(app.ec2, template)
    problems = [*_key_problems(template, facts), *aws_problems(template, facts)]
    if problems:
        raise app.config.refusal(template.name, problems, overrides)
    return facts


def _key_problems(template: Template, facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what would keep this machine from logging in."""
    public = facts.keys.get(template.keyname, "")
    try:
        mine = public_half(template.key.location)
    except SshError as error:
        yield "keyname", error.what
        return
    if public and public.split()[:2] != mine.split():
        file = short(template.key.location)
        yield "keyname", f"{file} is not the private half of '{template.keyname}' in {facts.region}"
