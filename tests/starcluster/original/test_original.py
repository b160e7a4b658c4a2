"""Each line of the table "the original and starmint" is true."""

from __future__ import annotations

import importlib
from typing import Any

import click
import pytest

from starcluster.cli.main import ALIASES, COMMANDS, cli
from starcluster.config import Plugin, schema
from starcluster.errors import InputError, PluginError
from starcluster.original import API, KEYS, PLUGINS, Option
from starcluster.original import COMMANDS as LIST
from starcluster.original.table import page, rows_of_commands
from starcluster.setup.hooks import load
from tests.commands import starcluster

ORIGINAL = list(LIST.values())
HERE = [command for command in ORIGINAL if not command.replaced]
OPTIONS = [(command.name, option) for command in HERE for option in command.options]
IDS = [f"{name}{option.names[-1]}" for name, option in OPTIONS]


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("each", HERE, ids=lambda each: each.name)
def test_every_command_has_its_aliases(each: Any) -> None:
    assert each.name in COMMANDS
    for alias in each.aliases:
        assert ALIASES[alias] == each.name


@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=IDS)
def test_every_option_is_accepted_or_says_what_replaces_it(name: str, option: Option) -> None:
    """The names of one option set one parameter; a note goes to the user, and only then."""
    (parameter,) = {
        id(found): found
        for found in command(name).params
        if isinstance(found, click.Option)
        and set(option.names) & {*found.opts, *found.secondary_opts}
    }.values()
    assert set(option.names) <= set(parameter.opts) or set(option.names) <= set(
        parameter.secondary_opts
    )
    assert not (option.ignored and option.refused)
    assert parameter.hidden == bool(option.ignored or option.refused)
    if parameter.hidden:
        assert parameter.is_flag != option.value


@pytest.mark.parametrize(
    ("name", "option"), [row for row in OPTIONS if row[1].ignored or row[1].refused]
)
def test_options_without_effect_say_so(
    name: str, option: Option, capsys: pytest.CaptureFixture[str]
) -> None:
    (parameter,) = (p for p in command(name).params if set(option.names) <= set(p.opts))
    context = click.Context(command(name))
    assert parameter.callback is not None
    if option.refused:
        with pytest.raises(InputError) as caught:
            parameter.callback(context, parameter, "x")
        assert option.refused in str(caught.value)
    else:
        parameter.callback(context, parameter, "x")
        assert option.ignored in capsys.readouterr().err
    parameter.callback(context, parameter, None if option.value else False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "each", [each for each in ORIGINAL if each.replaced], ids=lambda each: each.name
)
def test_a_command_that_is_not_here_says_what_replaces_it(each: Any) -> None:
    for word in (each.name, *each.aliases):
        assert word not in COMMANDS
        assert word not in ALIASES
        done = starcluster(word, "-x", "something")
        assert done.returncode == 2
        assert f"'{word}'" in done.stderr
        assert each.replaced in done.stderr


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_is_read_or_ignored(kind: str) -> None:
    keys = KEYS[kind]
    assert set(keys.same) <= set(schema.SECTIONS[kind])
    for key in keys.ignored:
        if key in schema.SECTIONS[kind]:
            assert "ignored" in schema.SECTIONS[kind][key].help
        else:
            assert key in schema.OBSOLETE
    for key in schema.OBSOLETE:
        assert any(key in each.ignored for each in KEYS.values())


@pytest.mark.parametrize(
    ("api", "name"), [(api, name) for api in API for name in API[api].same], ids=lambda part: part
)
def test_every_name_of_the_api_exists(api: str, name: str) -> None:
    module, _, kind = API[api].place.partition(":")
    found: Any = importlib.import_module(module)
    assert hasattr(getattr(found, kind) if kind else found, name)


@pytest.mark.parametrize(
    ("api", "name"), [(api, name) for api in API for name in API[api].replaced]
)
def test_a_name_that_is_replaced_does_not_exist(api: str, name: str) -> None:
    module, _, kind = API[api].place.partition(":")
    found: Any = importlib.import_module(module)
    assert not hasattr(getattr(found, kind) if kind else found, name)


ARGUMENTS = {"PackageInstaller": {"packages": "x"}, "PyPkgInstaller": {"packages": "x"}}
ARGUMENTS["CreateUsers"] = {"num_users": "2"}


@pytest.mark.parametrize("setup_class", PLUGINS)
def test_every_plugin_loads_or_says_what_replaces_it(setup_class: str) -> None:
    arguments = ARGUMENTS.get(setup_class.rpartition(".")[2], {})
    plugin = Plugin(name="p", setup_class=setup_class, arguments=arguments)
    if not PLUGINS[setup_class]:
        assert load(plugin)
        return
    with pytest.raises(PluginError) as caught:
        load(plugin)
    assert PLUGINS[setup_class] in str(caught.value)


def test_the_page_has_a_row_for_each_line() -> None:
    text = page()
    for each in ORIGINAL:
        assert f"``{each.name}``" in text
    for old, new in rows_of_commands():
        assert f"   * - {old}\n     - {new}\n" in text
    for setup_class in PLUGINS:
        assert f"``{setup_class}``" in text
