"""The page on starcluster names all commands, aliases, sections and keys."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import starcluster
from starcluster.cli.main import ALIASES, COMMANDS
from starcluster.config import schema
from starcluster.config.reference import reference

DOCS = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (DOCS / "starcluster.rst").read_text()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_its_alias_is_there(name: str) -> None:
    aliases = [f"``{alias}``" for alias, command in ALIASES.items() if command == name]
    shown = rf" \({', '.join(aliases)}\)" if aliases else ""
    assert re.search(rf"``{name}``{shown}", PAGE), (name, aliases)


@pytest.mark.parametrize("kind", sorted(schema.SECTIONS))
def test_every_section_has_the_reference_of_its_keys(kind: str) -> None:
    """The page includes the file that docs/conf.py writes with :func:`reference`."""
    title = f"[{kind}]" if kind in schema.WITHOUT_NAME else f"[{kind} NAME]"
    section = PAGE.split(f"\n{title}\n....")[1].split("\n....")[0]
    assert f".. include:: /_generated/starcluster_config_{kind.replace(' ', '_')}.rst\n" in section
    text = reference(kind)
    assert re.findall(r"^``(\w+)``$", text, re.MULTILINE) == list(schema.SECTIONS[kind])
    for key in schema.SECTIONS[kind].values():
        entry = text.split(f"``{key.name}``\n")[1].split("\n\n")[0]
        for fact in (key.help, key.example, key.unit, key.default_text, *key.flags):
            assert fact in entry


def test_the_policy_allows_every_request_and_no_other() -> None:
    """A wildcard allows all requests that only read."""
    policy = json.loads((DOCS / "starcluster-policy.json").read_text())
    given = [statement["Action"] for statement in policy["Statement"]]
    allowed = {
        action for names in given for action in ([names] if isinstance(names, str) else names)
    }
    source = "".join(path.read_text() for path in Path(starcluster.__file__).parent.rglob("*.py"))
    services = "ec2|iam|ssm|sts|pricing|service-quotas|resource-groups|efs|fsx|s3"
    of_policy = {"service-quotas": "servicequotas", "efs": "elasticfilesystem"}
    asked = {
        f"{of_policy.get(service, service)}:{_permission(service, name)}"
        for service, name in re.findall(rf'"({services})",\s*"([A-Z]\w+)"', source)
    }
    implied = {"iam:CreateServiceLinkedRole", "iam:PassRole"}
    implied |= {"iam:TagRole", "iam:TagInstanceProfile"}  # of what is created with tags
    implied |= {"ssm:StartSession", "ssm:ResumeSession", "ssm:TerminateSession"}  # by the CLI
    assert allowed - implied == asked


def _permission(service: str, request: str) -> str:
    if request.startswith("Describe") and service != "ssm":
        return "Describe*"
    return {"HeadBucket": "ListBucket"}.get(request, request)
