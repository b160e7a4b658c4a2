"""The page names every command, option and operation, and its table holds what a run gave."""

from __future__ import annotations

from pathlib import Path

import click

from pycuda_nn.bench.tables import NETFLIX_2014
from pycuda_nn.cli.bench import kernels, mulc
from pycuda_nn.cuda.elementwise.single import SINGLE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "gpu_kernels.rst").read_text(encoding="utf-8")
MEASURED = (DOCS / "why" / "measured_kernels.rst").read_text(encoding="utf-8")


def test_every_command_option_and_operation_is_named() -> None:
    for command in (mulc, kernels):
        assert f"pycuda-nn bench {command.name}" in PAGE
        for option in command.params:
            assert isinstance(option, click.Option)
            assert f"``{option.opts[0]}``" in PAGE
    for name in SINGLE:
        assert f"``{name}``" in PAGE


def test_the_columns_of_2014_are_those_of_the_command() -> None:
    for instance, by, checked, unchecked in NETFLIX_2014:
        row = f"{instance:<13}{by:<12}{checked:<9.2f}{unchecked:.2f}"
        assert row in MEASURED
