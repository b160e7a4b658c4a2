"""The command ``pycuda-nn describe``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import cloup

from pycuda_nn.cli.options import FILE, JSON, TABLE_OPTIONS, HelpOption, table_options
from pycuda_nn.data.sources import existing_file
from pycuda_nn.data.table.describe import TableReport
from pycuda_nn.data.table.describe import describe as report_of
from pycuda_nn.errors import ConfigError


@cloup.command()
@cloup.argument("file", type=FILE)
@cloup.option(
    "--target", cls=HelpOption, metavar="COLUMN",
    help="Take the labels from this column, by name or number. Default: the last.",
)  # fmt: skip
@TABLE_OPTIONS
@JSON
def describe(file: Path, target: str | None, as_json: bool, **table: Any) -> None:
    """Print the columns of a table and what train would do with each.

    Shows kind, missing cells, distinct values and their range, and warns of columns that number
    the rows, have one value, or are a copy of the target.

    \b
    Examples:
      pycuda-nn describe houses.csv --target price
      pycuda-nn describe houses.csv.gz --na unknown --json
    """
    options = table_options(str(file), table)
    if options is None:
        raise ConfigError(f"{file} is not a table", "Use a .csv, .csv.gz, .tsv or .parquet file.")
    report = report_of(existing_file(file), options, target)
    click.echo(json.dumps(report.as_dict()) if as_json else as_text(report))


def as_text(report: TableReport) -> str:
    """Return the report as aligned columns, followed by the warnings."""
    header = ("column", "kind", "missing", "distinct", "values", "training")
    rows = [
        (c.name, c.kind, f"{c.missing:,}", f"{c.distinct:,}", c.values, c.training)
        for c in report.columns
    ]
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [f"{report.file}: {report.rows:,} rows, {len(rows):,} columns", ""]
    for row in [header, *rows]:
        cells = [
            cell.rjust(width) if i in (2, 3) else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines += ["", *(f"warning: {warning}" for warning in report.warnings)]
    return "\n".join(lines).rstrip()
