"""Options that several commands share: their types, help texts and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import cloup

from pycuda_nn.data.table import TableOptions, is_table
from pycuda_nn.data.table.options import HEADER_CHOICES, MISSING_CHOICES, TEXT_CHOICES
from pycuda_nn.errors import ConfigError

FILE = click.Path(path_type=Path)


class HelpOption(cloup.Option):
    """An option whose help text itself names the default and whether a value is required."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the flags and the help text, without the marks that click appends."""
        record = super().get_help_record(ctx)
        return None if record is None else (record[0], self.help or "")


JSON = cloup.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
LABELS = cloup.option(
    "--labels", cls=HelpOption, type=FILE, metavar="FILE",
    help="Read the labels of a .npy source from this .npy file. Default: none.",
)  # fmt: skip

TABLE_OPTIONS = cloup.option_group(
    "Tables",
    cloup.option(
        "--drop", cls=HelpOption, multiple=True, metavar="COLUMN",
        help="Leave out this column of a table. Repeatable.",
    ),
    cloup.option(
        "--missing", cls=HelpOption, type=click.Choice(MISSING_CHOICES), default="impute",
        help="Fill missing cells with the mean of the training rows and mark them in another "
        "feature (impute), or fail (refuse). Default: impute.",
    ),
    cloup.option(
        "--text", cls=HelpOption, type=click.Choice(TEXT_CHOICES), default="auto",
        help="Encode text as one feature per value (one-hot), as 64 features for all values "
        "(hash), or fail (refuse); auto hashes columns with more than 64 values. Default: auto.",
    ),
    cloup.option(
        "--na", cls=HelpOption, multiple=True, metavar="TEXT",
        help="Read cells with this text as missing, like empty cells, ?, -, NA, NaN and null. "
        "Repeatable.",
    ),
    cloup.option(
        "--header", cls=HelpOption, type=click.Choice(HEADER_CHOICES), default="auto",
        help="Read the first row of a CSV file as column names (yes) or data (no). Default: auto.",
    ),
)  # fmt: skip


def table_options(source: str, values: Mapping[str, Any]) -> TableOptions | None:
    """Return the options of :data:`TABLE_OPTIONS` in ``values``; None for other sources.

    Raises:
        ConfigError: An option is set, but the source is not a table.
    """
    chosen = TableOptions(**{field.name: values[field.name] for field in fields(TableOptions)})
    if is_table(Path(source)):
        return chosen
    if chosen != TableOptions():
        raise ConfigError(
            f"--drop, --missing, --text, --na, --header: {source} is not a table with columns",
            "Remove these options.",
        )
    return None


def check_source(source: str, labels: Path | None, target: str | None) -> None:
    """Raise ConfigError for an option that this kind of source does not read."""
    kind = Path(source).suffix
    if target is not None and not is_table(Path(source)):
        raise ConfigError(f"--target: {source} is not a table with columns", "Remove --target.")
    if labels is not None and kind != ".npy":
        raise ConfigError(f"--labels: {source} is not a .npy file", "Remove --labels.")
