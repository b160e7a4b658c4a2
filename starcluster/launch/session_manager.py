"""Check before a launch what SSH through Session Manager needs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

from starcluster.aws.ec2 import Ec2
from starcluster.aws.session_manager import POLICY
from starcluster.config.template import Template
from starcluster.errors import AwsError
from starcluster.launch.preflight import AwsInventory
from starcluster.logger import log

_PROGRAMS = {
    "aws": "Install the AWS CLI: "
    "https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    "session-manager-plugin": "Install the plugin of the AWS CLI: https://docs.aws.amazon.com/"
    "systems-manager/latest/userguide/session-manager-working-with-install-plugin.html",
}
_WITHOUT_AGENT = re.compile(r"/aws/service/debian/|debian-\d+-(amd64|arm64)")


def missing_program() -> tuple[str, str] | None:
    """Return which program this machine lacks for a session, and the fix; None if it has all."""
    for name, fix in _PROGRAMS.items():
        if shutil.which(name) is None:
            return f"{name} is not installed on this machine", fix
    return None


def session_problems(
    ec2: Ec2, template: Template, inventory: AwsInventory
) -> Iterator[tuple[str, str]]:
    """Yield the config key and the text of each problem; nothing without ``ssh_via``."""
    if not template.ssh_via:
        return
    if missing := missing_program():
        yield "ssh_via", ". ".join(missing)
    for reference, image in inventory.images.items():
        if _WITHOUT_AGENT.match(reference) or _WITHOUT_AGENT.match(image.name):
            text = f"image {image.id} is Debian's, which has no SSM agent. Use Ubuntu, or a custom"
            yield "ssh_via", f"{text} image with the agent"
    profile = inventory.profile
    if profile is None:
        return
    if not profile.arn:
        _unchecked("iam:GetInstanceProfile")
    for role in profile.roles:
        try:
            allowed = ec2.may_register(role)
        except AwsError as error:
            _unchecked(error.what)
            continue
        if not allowed:
            text = f"its role {role} lacks the policy {POLICY}, so nodes cannot be reached. "
            text += f"Attach it: aws iam attach-role-policy --role-name {role} --policy-arn "
            yield "instance_profile", f"{text}arn:aws:iam::aws:policy/{POLICY}"


def _unchecked(why: str) -> None:
    log.warning("not checked whether the role of instance_profile has %s: %s", POLICY, why)
