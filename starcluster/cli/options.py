"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import cloup

from starcluster.cluster.operation import BAD_NODE
from starcluster.errors import InputError
from starcluster.original import COMMANDS, Option

Decorated = TypeVar("Decorated", bound=Callable[..., object])

json_option = cloup.option("--json", "as_json", is_flag=True, help="Print JSON.")
confirm_option = cloup.option("-c", "--confirm", is_flag=True, help="Do not ask for confirmation.")
bad_node_option = cloup.option(
    "--on-bad-node",
    type=click.Choice(BAD_NODE),
    default=BAD_NODE[0],
    help="Do this with a node that fails: leave it as it is, remove it, or replace it once. "
    "Default: leave.",
)


class Number(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.1
    """A number within limits that ``--help`` does not show as a mark such as ``[x>=1]``."""

    def __init__(self, limits: click.IntRange | click.FloatRange) -> None:
        self._limits = limits
        self.name = limits.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        """Return the number, or fail with the limits."""
        number: int | float = self._limits.convert(value, param, ctx)
        return number


COUNT = Number(click.IntRange(1))


def original_options(command: str) -> Callable[[Decorated], Decorated]:
    """Add the options of the original that have no effect here; help does not list them.

    One that is given is ignored with a note, or refused with what replaces it.
    """

    def add(function: Decorated) -> Decorated:
        for option in COMMANDS[command].options:
            if option.ignored or option.refused:
                function = cloup.option(
                    *option.names,
                    hidden=True,
                    expose_value=False,
                    is_flag=not option.value,
                    callback=_told(option),
                )(function)
        return function

    return add


def _told(option: Option) -> Callable[[click.Context, click.Parameter, Any], None]:
    def tell(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        name = ", ".join(option.names)
        if value and option.refused:
            raise InputError(f"{name} is not supported", option.refused)
        if value:
            click.echo(f"Ignored {name}: {option.ignored}.", err=True)

    return tell
