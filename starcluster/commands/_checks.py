"""Check everything before a launch costs anything; shared by start and addnode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from starcluster.config.syntax import short
from starcluster.errors import SshError
from starcluster.launch.preflight import AwsInventory, aws_problems, fetch
from starcluster.launch.session_manager import session_problems
from starcluster.launch.ssh_access import jump_problem
from starcluster.node.jump import problem_of
from starcluster.node.shell import public_half

if TYPE_CHECKING:
    from starcluster.cli.app import App
    from starcluster.config.template import Template


def checked(app: App, template: Template, overrides: Mapping[str, str]) -> AwsInventory:
    """Return the AWS resources that ``template`` names.

    Raises:
        ConfigError: AWS does not have some of them; each problem has its file and line.
    """
    inventory = fetch(app.ec2, template)
    problems = [*_key_problems(template, inventory), *aws_problems(template, inventory)]
    problems += session_problems(app.ec2, template, inventory)
    if problems:
        raise app.config.refusal(template.name, problems, overrides)
    return inventory


def _key_problems(template: Template, inventory: AwsInventory) -> Iterator[tuple[str, str]]:
    """Yield the problems that would prevent this machine from logging in."""
    jump = template.ssh_proxy_jump
    if text := jump_problem(template) or (jump and problem_of(jump, template.key.location)):
        yield "ssh_proxy_jump", text
    public = inventory.keys.get(template.keyname, "")
    try:
        mine = public_half(template.key.location)
    except SshError as error:
        yield "keyname", error.what
        return
    if public and public.split()[:2] != mine.split():
        file = short(template.key.location)
        yield (
            "keyname",
            f"{file} does not match the key pair '{template.keyname}' in {inventory.region}",
        )
