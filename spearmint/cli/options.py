"""Arguments and types that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from spearmint.formatting import parse_duration

config_argument = click.argument(
    "config", metavar="DIR", type=click.Path(path_type=Path), default=Path()
)
storage_option = click.option(
    "--storage",
    metavar="URL",
    envvar="SPEARMINT_STORAGE",
    help="Any Optuna storage, e.g. postgresql://HOST/DB; default: SQLite beside config.pb. "
    "A URL with a password belongs into $SPEARMINT_STORAGE.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
region_option = click.option("--region", metavar="NAME", help="Only this region; default: all.")


class Finite(click.FloatRange):
    """A number, neither infinite nor NaN."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return ``value`` as a float."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


class Duration(click.ParamType[float]):
    """Seconds above 0, or a number with s, m, h or d; converts to seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return ``value`` in seconds."""
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
