"""The page names every setting, command and option, and its Python lines run."""

from __future__ import annotations

import importlib
import re
import textwrap
from pathlib import Path

import click
import pytest

import pycuda_nn as nn
from pycuda_nn.cli.main import cli
from pycuda_nn.config import CHECKS
from pycuda_nn.layers import from_description

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


def _block(after: str) -> str:
    """Return the first block of Python behind these words."""
    block = re.search(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE[PAGE.index(after) :])
    assert block is not None
    return textwrap.dedent(block[1])


def test_the_layer_of_the_page_is_tested_trains_and_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The three blocks of "Add a layer", as a user types them."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, words in (("leaky_relu", "One file: "), ("test_leaky_relu", "And its test,")):
        (tmp_path / f"{name}.py").write_text(_block(words))
    contract = importlib.import_module("test_leaky_relu").TestLeakyRelu()
    rules = [name for name in dir(contract) if name.startswith("test_")]
    assert len(rules) >= 6
    for name in rules:
        getattr(contract, name)()
    parts = nn.load_splits("digits")
    names = {"nn": nn, "train": parts.train, "valid": parts.valid}
    for words in ("A network is a tuple of layers", "It trains, goes into a checkpoint"):
        exec(_block(words).replace("epochs=30", "epochs=2"), names)  # noqa: S102 - our own page
        names["LeakyRelu"] = importlib.import_module("leaky_relu").LeakyRelu
        assert len(names["result"].history) == 2
    again = {**names["layers"][1].description(), "slope": 0.2}
    assert from_description(again) == names["LeakyRelu"](0.2)
