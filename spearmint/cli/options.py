"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from spearmint.cli.setting_options import click_option
from spearmint.fields import settings_of
from spearmint.run_options import RunOptions

config_argument = click.argument(
    "config", metavar="DIR", type=click.Path(path_type=Path), default=Path()
)
storage_option = next(
    click_option(declared) for declared in settings_of(RunOptions) if declared.name == "storage"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
region_option = click.option("--region", metavar="NAME", help="Only this region; default: all.")
