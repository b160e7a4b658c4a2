"""Arguments that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

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
