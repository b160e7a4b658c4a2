"""Every command and option explains itself: sentences, units, defaults, examples, groups."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import pytest

from condor_jobs.cli.main import build_parser as condor_jobs_parser
from pycuda_nn.cli.main import cli as pycuda_nn_cli
from sge_jobs.cli.main import build_parser
from spearmint.cli.main import cli as spearmint_cli
from starcluster.cli.main import cli as starcluster_cli

GROUP_FROM = 9
"""A command with this many options shows them in groups."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option as its help shows it; ``needs_default`` for a value that is not required."""

    flags: str
    help: str
    needs_default: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command with its whole help."""

    name: str
    text: str
    options: tuple[Option, ...]


def click_commands(name: str, command: click.Command) -> Iterator[Command]:
    context = command.context_class(command, info_name=name)
    options = tuple(
        Option(
            "/".join(parameter.opts),
            " ".join((parameter.get_help_record(context) or ("", ""))[1].split()),
            not (parameter.is_flag or parameter.required or parameter.secondary_opts),
        )
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and not parameter.hidden
    )
    yield Command(name, command.get_help(context), options)
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from click_commands(f"{name} {child}", found)


def argparse_commands(parser: argparse.ArgumentParser) -> Iterator[Command]:
    actions: list[Any] = parser._actions
    formatter = parser._get_formatter()
    options = tuple(
        Option(
            "/".join(action.option_strings),
            formatter._expand_help(action) if action.help else "",
            action.nargs != 0 and not action.required,
        )
        for action in actions
        if action.option_strings and action.help != argparse.SUPPRESS
    )
    yield Command(parser.prog, parser.format_help(), options)
    for action in actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from argparse_commands(child)


def commands() -> list[Command]:
    return [
        *click_commands("spearmint", spearmint_cli),
        *click_commands("starcluster", starcluster_cli),
        *click_commands("pycuda-nn", pycuda_nn_cli),
        *argparse_commands(build_parser()),
        *argparse_commands(condor_jobs_parser()),
    ]


ALL = commands()
each_command = pytest.mark.parametrize("command", ALL, ids=[command.name for command in ALL])


@each_command
def test_each_option_has_a_sentence(command: Command) -> None:
    wrong = [o for o in command.options if not re.match(r"[A-Z0-9$].*\.$", o.help, re.DOTALL)]
    assert not wrong


@each_command
def test_each_option_with_a_value_names_its_default(command: Command) -> None:
    says = re.compile(r"\bDefault: [^.]|\bRequired\b|\bRepeatable\b")
    assert not [o for o in command.options if o.needs_default and not says.search(o.help)]


@each_command
def test_help_has_no_marks_of_ranges_or_types(command: Command) -> None:
    assert not re.search(r"\[[^]]*(<=|>=|x<|x>)[^]]*\]| RANGE\b|\bNone\b", command.text)


@each_command
def test_help_shows_examples_to_type(command: Command) -> None:
    program = command.name.split()[0]
    lines = [line.split("$ ")[-1].strip() for line in command.text.splitlines()]
    body = command.text.lower()
    assert "example" in body
    assert sum(line.startswith(f"{program} ") for line in lines) >= 2, command.text


@each_command
def test_many_options_are_in_groups(command: Command) -> None:
    if len(command.options) < GROUP_FROM:
        return
    headings = re.findall(r"^([A-Z][A-Za-z ,'.]+):$", command.text, re.MULTILINE)
    headings = [name for name in headings if name not in {"Usage", "Examples"}]
    assert len(headings) >= 3, headings
