"""The page names every setting, command and option, and its Python lines run."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import click
import pytest

import pycuda_nn as nn
from pycuda_nn.cli.main import cli
from pycuda_nn.config import CHECKS

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "pycuda_nn.rst").read_text(
    encoding="utf-8"
)


@pytest.mark.parametrize("key", CHECKS)
def test_each_setting_has_a_row_with_its_default(key: str) -> None:
    row = re.search(rf"\* - ``{key}``\n +- (.+)\n", PAGE)
    assert row is not None
    shown = row[1].strip("`")
    default = getattr(nn.TrainConfig(), key)
    words = {None: "none", False: "false"}
    if isinstance(default, tuple):
        assert shown == str(list(default))
    elif default is None or default is False:
        assert shown == words[default]
    elif isinstance(default, str):
        assert shown == default
    else:
        assert float(shown) == default


def test_every_command_and_option_is_named() -> None:
    for name, command in cli.commands.items():
        assert f"pycuda-nn {name} " in PAGE
        for option in command.params:
            if isinstance(option, click.Option):
                assert f"``{option.opts[0]}``" in PAGE


def test_the_python_lines_run(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.search(r"In Python\n-+\n\n\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE)
    assert block is not None
    code = textwrap.dedent(block[1]).replace("epochs=30", "epochs=2")
    exec(code, {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.count("EpochReport(epoch=") == 2


def test_the_public_names_are_on_the_page() -> None:
    for name in nn.__all__:
        assert name in PAGE, name
