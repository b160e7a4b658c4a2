"""The options of ``spearmint run`` that say what each trial needs of a queue."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spearmint.cli.options import Duration
from spearmint.resources import Resources, split_variable


class Variable(click.ParamType[tuple[str, str]]):
    """``NAME=VALUE``; converts to the pair."""

    name = "variable"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return name and value."""
        try:
            return split_variable(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


_OPTIONS = [
    click.option("--gpus", type=click.IntRange(0), help="GPUs of each trial; default: 1."),
    click.option("--slots", type=click.IntRange(1), help="Slots of each trial; default: 1."),
    click.option(
        "--pe", "parallel_environment", metavar="NAME", help="Where slots come from; default: smp."
    ),
    click.option("--walltime", "walltime_s", type=Duration(), help="The queue ends a trial then."),
    click.option("--memory", metavar="SIZE", help="Memory a host must have free, e.g. 8G."),
    click.option("-q", "--queue", metavar="NAME", help="Queue, as for qsub."),
    click.option("-P", "--project", metavar="NAME", help="Project, as for qsub."),
    click.option(
        "-l",
        "--request",
        "requests",
        multiple=True,
        metavar="NAME=VALUE",
        help="Any other resource, as for qsub; may be repeated.",
    ),
    click.option(
        "--submit-option",
        "options",
        multiple=True,
        metavar="ARG",
        help="Any other argument of qsub; may be repeated.",
    ),
    click.option(
        "--env",
        "environment",
        multiple=True,
        type=Variable(),
        metavar="NAME=VALUE",
        help="A variable of each trial; may be repeated.",
    ),
    click.option("--module", "modules", multiple=True, metavar="NAME", help="Module to load."),
    click.option(
        "--venv",
        type=click.Path(path_type=Path),
        help="Python environment that trials run in; default: the one spearmint runs in.",
    ),
    click.option("--setup", multiple=True, metavar="LINE", help="Line of shell to run first."),
]
_NAMES = [field.name for field in dataclasses.fields(Resources)]


def resource_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give ``command`` every option of :class:`Resources`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def asks_for_resources(options: dict[str, Any]) -> bool:
    """Tell whether any option of :func:`resource_options` was given."""
    return any(options[name] not in (None, ()) for name in _NAMES)


def take_resources(options: dict[str, Any], declared: Resources) -> Resources:
    """Take the options of :func:`resource_options` out of ``options``.

    Returns:
        ``declared``, config.pb's, with what the command line says instead; variables are merged.
    """
    given = {name: options.pop(name) for name in _NAMES}
    changed = {name: value for name, value in given.items() if value not in (None, ())}
    if "environment" in changed:
        merged = {**dict(declared.environment), **dict(changed["environment"])}
        changed["environment"] = tuple(merged.items())
    if "venv" in changed:
        with contextlib.suppress(RuntimeError):  # no such user
            changed["venv"] = changed["venv"].expanduser()
        changed["venv"] = changed["venv"].absolute()
    return dataclasses.replace(declared, **changed)
