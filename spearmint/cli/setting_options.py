"""Click options of the settings that a dataclass declares."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import cloup

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

if TYPE_CHECKING:
    from click.types import OptionHelpExtra

_COMMON = "Common options"


class _Parsed(click.ParamType[Any]):
    """A value that the type of its setting parses."""

    def __init__(self, kind: ValueType) -> None:
        self.kind = kind
        self.name = kind.name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed ``value``; a default is already parsed."""
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


class PlainOption(click.Option):
    """An option whose help is its text only, without click's marks of ranges."""

    def get_help_extra(self, ctx: click.Context) -> OptionHelpExtra:
        """Return no marks."""
        return {}


class SettingOption(PlainOption):
    """An option of a setting; its help lists the built-in and the installed values.

    Args:
        declared: The setting.
    """

    def __init__(self, *args: Any, declared: Setting, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.declared = declared

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option and its help."""
        record = super().get_help_record(ctx)
        declared = self.declared
        if record is None:
            return None
        known = load_class(declared.registry) if declared.registry else ()
        installed = entry_point_classes(declared.plugins) if declared.plugins else ()
        lists = {"Built-in": ", ".join(known), "Installed": ", ".join(installed)}
        sentences = (f"{label}: {names}." for label, names in lists.items() if names)
        return record[0], declared.sentences(_fallback(declared), *sentences)


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
    parts = (f"{key.name} of config.pb" if key else "", declared.fallback)
    return ", or ".join(filter(None, parts))


def _whole(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def click_option(declared: Setting, **others: Any) -> Callable[..., Any]:
    """Return a decorator that adds the option of ``declared`` to a command.

    Args:
        declared: The setting.
        others: Further arguments of click.option.
    """
    if declared.kind is SWITCH:
        others["is_flag"] = True
    else:
        others["type"] = _click_type(declared)
        others["multiple"] = declared.repeated
        others["metavar"] = declared.metavar or declared.kind.name.upper()
    return click.option(
        *declared.flags,
        declared.name,
        cls=SettingOption,
        declared=declared,
        envvar=declared.environment or None,
        help=declared.sentences(_fallback(declared)),
        **others,
    )


def options_of(
    cls: type, *, heading: str = "Options", about: str = "", defaults: bool = True
) -> Callable[..., Any]:
    """Return a decorator that adds every option that ``cls`` declares, in groups.

    Args:
        cls: A dataclass with settings.
        heading: Heading of the settings without a group.
        about: Text below that heading.
        defaults: Whether an option that is not given has its default. Otherwise it is None (or
            ``()`` if it is repeatable), so that config.pb decides.
    """
    groups: dict[str, list[Callable[..., Any]]] = {_COMMON: []}
    for declared in settings_of(cls):
        title = _COMMON if declared.is_common else declared.group or heading
        others: dict[str, Any] = {"default": declared.default} if defaults else {}
        groups.setdefault(title, []).append(click_option(declared, **others))

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for title, options in reversed(groups.items()):
            if options:
                text = about if title == heading else None
                command = cloup.option_group(title, *options, help=text)(command)
        return command

    return decorate


def given_options(cls: type, options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that ``cls`` declares from ``options``; return those that were given."""
    taken = {declared.name: options.pop(declared.name) for declared in settings_of(cls)}
    return {name: value for name, value in taken.items() if value not in (None, ())}


def flags_of(cls: type, names: Any) -> list[str]:
    """Return the long options of the settings ``names`` of ``cls``, in order of declaration."""
    return [declared.flag for declared in settings_of(cls) if declared.name in names]
