"""Arguments and options of several commands."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from spearmint.cli.setting_options import click_option
from spearmint.fields import settings_of
from spearmint.run_options import RunOptions

config_argument = cloup.argument(
    "config",
    metavar="[DIR]",
    type=click.Path(path_type=Path),
    default=Path(),
    help="A config.pb, or the directory that contains it. Default: the current directory.",
)
storage_option = next(
    click_option(declared) for declared in settings_of(RunOptions) if declared.name == "storage"
)
trials_argument = cloup.argument(
    "words",
    metavar="[DIR] TRIAL...",
    nargs=-1,
    required=True,
    help="The directory of config.pb (default: the current one), then numbers of trials.",
)
trial_region_option = click.option(
    "--region", metavar="NAME", help="Region of the trials. Default: the only one."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
region_option = click.option(
    "--region", metavar="NAME", help="Show only this region. Default: all regions."
)
