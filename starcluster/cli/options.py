"""Options that several commands share."""

from __future__ import annotations

from typing import Any

import click
import cloup

from starcluster.cluster.operation import BAD_NODE

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
