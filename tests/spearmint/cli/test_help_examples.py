"""The examples in the help of each command name files of this repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spearmint.cli.main import COMMANDS
from tests.commands import spearmint

ROOT = Path(__file__).parents[3]


def named(command: str) -> list[Path]:
    """Return the paths below ``examples`` in the help of a command."""
    text = spearmint(command, "--help").stdout
    return [ROOT / found for found in re.findall(r"(?<!\S)examples/\S+", text)]


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_exist(command: str) -> None:
    assert [path for path in named(command) if not path.exists()] == []


@pytest.mark.parametrize("command", ["final", "promote", "rollback"])
def test_examples_of_models_have_the_function_that_trains_one(command: str) -> None:
    paths = named(command)
    assert paths
    for path in paths:
        assert any("def final(" in file.read_text() for file in path.glob("*.py")), path
