"""Options made from the settings that a dataclass declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spearmint.fields import (
    INTEGER,
    NUMBER,
    PATH,
    SWITCH,
    TEXT,
    Setting,
    ValueType,
    key_of,
    settings_of,
)
from spearmint.plugins import entry_point_classes, load_class

_OTHERS = "Options"


class _Parsed(click.ParamType[Any]):
    """A value that its type parses, in the bounds of its setting."""

    def __init__(self, kind: ValueType) -> None:
        self.kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed ``value``; a default is parsed already."""
        if not isinstance(value, str):
            return value
        try:
            return self.kind.parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Finite(click.FloatRange):
    """A number, neither infinite nor NaN."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return ``value`` as a float."""
        number = super().convert(value, param, ctx)
        return _Parsed(NUMBER).convert(str(number), param, ctx)


class SettingOption(click.Option):
    """An option of a setting; its help lists the names that it takes.

    Args:
        declared: The setting.
        group: Heading in the help.
    """

    def __init__(self, *args: Any, declared: Setting, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option and its help."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        known = load_class(self.declared.registry) if self.declared.registry else ()
        installed = entry_point_classes(self.declared.plugins) if self.declared.plugins else ()
        lists = {"Ours": ", ".join(known), "Installed": ", ".join(installed)}
        sentences = (f"{label}: {names}." for label, names in lists.items() if names)
        return record[0], " ".join([record[1], *sentences])


class GroupedCommand(click.Command):
    """A command whose help shows its options by group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group under its heading."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record and isinstance(parameter, click.Option):
                groups.setdefault(getattr(parameter, "group", _OTHERS), []).append(record)
        groups[_OTHERS] = groups.pop(_OTHERS, [])  # last
        for heading, records in groups.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _click_type(declared: Setting) -> click.ParamType[Any] | type:
    if declared.kind is INTEGER:
        return click.IntRange(_whole(declared.minimum), _whole(declared.maximum))
    if declared.kind is NUMBER and declared.minimum is not None:
        return _Finite(declared.minimum, declared.maximum, min_open=declared.is_open)
    if declared.kind is PATH:
        return click.Path(path_type=Path)
    return str if declared.kind is TEXT else _Parsed(declared.kind)


def _fallback(declared: Setting) -> str:
    key = key_of(declared) if declared.group else None
    parts = (f"config.pb's {key.name}" if key else "", declared.fallback)
    return ", or ".join(filter(None, parts))


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def click_option(declared: Setting, *, group: str = "", **others: Any) -> Callable[..., Any]:
    """Return the decorator that gives a command this option.

    Args:
        declared: The setting.
        group: Its heading, where the setting names none.
        others: Passed to click.option.
    """
    if declared.kind is SWITCH:
        others["is_flag"] = True
    else:
        others["type"] = _click_type(declared)
        others["multiple"] = declared.repeated
        others["metavar"] = declared.metavar or None
    return click.option(
        *declared.flags,
        declared.name,
        cls=SettingOption,
        declared=declared,
        group=declared.group or group or _OTHERS,
        envvar=declared.environment or None,
        help=declared.sentences(_fallback(declared)),
        **others,
    )


def options_of(cls: type, *, group: str = "", defaults: bool = True) -> Callable[..., Any]:
    """Return the decorator that gives a command every option that ``cls`` declares.

    Args:
        cls: A dataclass with settings.
        group: Heading of the settings that name none.
        defaults: Whether an option that is not given has its default, or None (``()`` where it
            may be repeated), so that config.pb decides.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for declared in reversed(settings_of(cls)):
            others: dict[str, Any] = {"default": declared.default} if defaults else {}
            command = click_option(declared, group=group, **others)(command)
        return command

    return decorate


def given_options(cls: type, options: dict[str, Any]) -> dict[str, Any]:
    """Take the options that ``cls`` declares out of ``options``; return those that were given."""
    taken = {declared.name: options.pop(declared.name) for declared in settings_of(cls)}
    return {name: value for name, value in taken.items() if value not in (None, ())}


def flags_of(cls: type, names: Any) -> list[str]:
    """Return the long options of the settings ``names`` of ``cls``, in order."""
    return [declared.flag for declared in settings_of(cls) if declared.name in names]
