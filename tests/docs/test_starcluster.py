"""The page on starcluster names every command, alias, section and key there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import starcluster
from starcluster.cli.main import ALIASES, COMMANDS
from starcluster.config import schema as config_keys

DOCS = Path(__file__).parents[2] / "docs" / "reference"
PAGE = (DOCS / "starcluster.rst").read_text()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_its_alias_is_there(name: str) -> None:
    aliases = [alias for alias, command in ALIASES.items() if command == name]
    shown = "".join(rf" \(``{alias}``\)" for alias in aliases)
    assert re.search(rf"``{name}``{shown}", PAGE), (name, aliases)


@pytest.mark.parametrize("kind", sorted(config_keys.SECTIONS))
def test_every_key_is_in_its_section(kind: str) -> None:
    title = f"[{kind}]" if kind in config_keys.WITHOUT_NAME else f"[{kind} NAME]"
    section = PAGE.split(f"\n{title}\n....")[1].split("\n....")[0]
    entries = re.findall(r"^``.*``$", section, re.MULTILINE)
    documented = re.findall(r"``(\w+)``", " ".join(entries))
    assert sorted(documented) == sorted(config_keys.SECTIONS[kind])


def test_the_policy_allows_every_request_and_no_other() -> None:
    """A wildcard stands for those that only look."""
    policy = json.loads((DOCS / "starcluster-policy.json").read_text())
    given = [statement["Action"] for statement in policy["Statement"]]
    allowed = {each for names in given for each in ([names] if isinstance(names, str) else names)}
    source = "".join(path.read_text() for path in Path(starcluster.__file__).parent.rglob("*.py"))
    services = "ec2|ssm|sts|pricing|service-quotas"
    asked = {
        f"{service.replace('-', '')}:{'Describe*' if name.startswith('Describe') else name}"
        for service, name in re.findall(rf'"({services})",\s*"([A-Z]\w+)"', source)
    }
    assert allowed - {"iam:CreateServiceLinkedRole"} == asked
