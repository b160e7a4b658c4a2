"""Arguments and types that several commands share."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from spearmint.formatting import parse_duration
from spearmint.plugins import entry_point_classes

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


class PluginOption(click.Option):
    """Names a class; its help lists those that installed packages add.

    Args:
        group: Group of their entry points.
    """

    def __init__(self, *args: Any, group: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.group = group

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the names of the option and its help."""
        record, names = super().get_help_record(ctx), ", ".join(entry_point_classes(self.group))
        return (record[0], f"{record[1]} Installed: {names}.") if record and names else record


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
