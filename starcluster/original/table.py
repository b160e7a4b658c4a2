"""The page "the original and starmint", from the lists of this package."""

from __future__ import annotations

from collections.abc import Iterable

from starcluster.original.api import API
from starcluster.original.commands import COMMANDS, Command, Option
from starcluster.original.keys import KEYS
from starcluster.original.plugins import PLUGINS

SAME = "the same"
_NO_NAME = ("global", "aws info")


def rows_of_commands() -> list[tuple[str, str]]:
    """Return a row for each command, and one for each option that is not the same."""
    rows = []
    for command in COMMANDS.values():
        names = ", ".join(f"``{name}``" for name in (command.name, *command.aliases))
        rows.append((names, _replaced(command.replaced) or _options(command)))
        for option in command.options:
            if text := _effect(option):
                shown = ", ".join(f"``{name}``" for name in option.names)
                rows.append((f"``{command.name}`` {shown}", text))
    return rows


def rows_of_keys() -> list[tuple[str, str]]:
    """Return a row for the keys of each section that are the same, and for each other key."""
    rows = []
    for kind, keys in KEYS.items():
        title = f"``[{kind}]``" if kind in _NO_NAME else f"``[{kind} NAME]``"
        rows.append((f"{title} {_literals(keys.same)}", SAME))
        rows += [(f"{title} ``{key}``", f"ignored: {why}") for key, why in keys.ignored.items()]
    return rows


def rows_of_api() -> list[tuple[str, str]]:
    """Return a row for the names of each object that are the same, and for each other name."""
    rows = []
    for name, api in API.items():
        rows.append((f"``{name}``: {_literals(api.same)}", SAME))
        rows += [(f"``{name}.{old}``", new) for old, new in api.replaced.items()]
    return rows


def rows_of_plugins() -> list[tuple[str, str]]:
    """Return a row for each plugin."""
    return [(f"``{name}``", _replaced(text) or SAME) for name, text in PLUGINS.items()]


def page() -> str:
    """Return the tables as reStructuredText."""
    tables = {
        "Commands and options": rows_of_commands(),
        "Config": rows_of_keys(),
        "Plugin API": rows_of_api(),
        "Plugins": rows_of_plugins(),
    }
    return "\n".join(
        f"{title}\n{'-' * len(title)}\n\n{_table(rows)}" for title, rows in tables.items()
    )


def _table(rows: Iterable[tuple[str, str]]) -> str:
    head = ".. list-table::\n   :header-rows: 1\n   :widths: 50 50\n\n"
    lines = [f"   * - {old}\n     - {new}\n" for old, new in (("StarCluster", "starmint"), *rows)]
    return head + "".join(lines)


def _options(command: Command) -> str:
    same = [option for option in command.options if not _effect(option)]
    if not same:
        return SAME
    return f"{SAME}, with {', '.join('/'.join(f'``{n}``' for n in o.names) for o in same)}"


def _effect(option: Option) -> str:
    if option.refused:
        return _replaced(option.refused)
    return f"ignored: {option.ignored}" if option.ignored else ""


def _replaced(text: str) -> str:
    return f"not here. {text}" if text else ""


def _literals(names: Iterable[str]) -> str:
    return ", ".join(f"``{name}``" for name in names)
