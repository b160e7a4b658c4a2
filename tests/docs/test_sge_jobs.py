"""The page names every command, option and setting, and its Python code runs."""

from __future__ import annotations

import argparse
import os
import re
import textwrap
from pathlib import Path

import pytest

from sge_jobs.cell.desired import CONFIGURED, SCHEDULER
from sge_jobs.cli.main import COMMANDS, build_parser
from tests.sge_jobs.fake_gridengine import FakeGridEngine

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "sge_jobs.rst").read_text(
    encoding="utf-8"
)


def parsers() -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for action in build_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_its_long_options_are_named(name: str) -> None:
    assert f"sge-jobs {name}" in PAGE
    for action in parsers()[name]._actions:
        for option in action.option_strings:
            if option.startswith("--") and option != "--help":
                assert re.search(rf"{option}\b", PAGE), option


@pytest.mark.parametrize("name", [*SCHEDULER, *CONFIGURED])
def test_every_setting_is_named(name: str) -> None:
    assert f"``{name}``" in PAGE


def test_the_python_lines_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = FakeGridEngine(tmp_path / "cell")
    monkeypatch.setenv("PATH", f"{cell.programs}:{os.environ['PATH']}")
    block = re.search(r"code-block:: python\n\n((?:   .*\n|\n)+)", PAGE)
    assert block is not None
    exec(textwrap.dedent(block[1]), {})  # noqa: S102 - our own page
    assert cell.jobs() == {}
    with cell.state() as state:
        assert state["calls"][0][0] == "qsub"
