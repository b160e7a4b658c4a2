"""``spearmint final``: train the final model of a search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import cloup

from spearmint.cli.options import config_argument, json_option, storage_option
from spearmint.cli.setting_options import PlainOption, options_of
from spearmint.resources import Resources


@cloup.command()
@config_argument
@click.option(
    "--trial",
    "number",
    cls=PlainOption,
    type=click.IntRange(1),
    metavar="N",
    help="Train with the parameters of trial N. Default: the trial that spearmint best prints.",
)
@click.option(
    "--median-of",
    cls=PlainOption,
    type=click.IntRange(1),
    metavar="K",
    help="Of the K best trials, take the one with the median value. Default: the trial that "
    "spearmint best prints.",
)
@click.option("--retrain", is_flag=True, help="Train a new version, also from the same trial.")
@click.option("--driver", metavar="NAME", help="Run the job here. Default: that of the search.")
@click.option("--region", metavar="NAME", help="Train this region only. Default: all regions.")
@storage_option
@json_option
@options_of(
    Resources,
    heading="Resources of the job",
    about="Only for drivers with a queue, such as SGE. They override the block resources of "
    "config.pb.",
    defaults=False,
)
def final(
    config: Path,
    number: int | None,
    median_of: int | None,
    retrain: bool,
    driver: str | None,
    region: str | None,
    storage: str | None,
    as_json: bool,
    **resources: Any,
) -> int:
    """Train the best trial on all data, test it once, and keep the model.

    The job calls final(job_id, params, model_dir) of the same file as main, by the same driver. It
    writes the model to model_dir, and returns the test metric. The model is kept in
    models/REGION/VERSION; rerun the command to continue after Ctrl-C or a kill. Without a new best
    trial, it trains nothing.

    \b
    Examples:
      spearmint final examples/regions
      spearmint final --median-of=5 --region=us examples/regions
    """
    if number and median_of:
        raise click.UsageError("Give --trial or --median-of, not both.")
    from spearmint.cli.run_final import run_final

    rows = run_final(
        config,
        storage,
        region,
        driver=driver,
        resources=resources,
        quiet=as_json,
        retrain=retrain,
        number=number or 0,
        median_of=median_of or 0,
    )
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    return 1 if any(row["failure"] for row in rows) else 0
