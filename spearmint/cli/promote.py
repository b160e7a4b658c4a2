"""``spearmint promote``: make better models current."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from spearmint.cli.options import config_argument, json_option
from spearmint.cli.setting_options import PlainOption
from spearmint.cli.stores import model_stores
from spearmint.errors import InputError, next_command

if TYPE_CHECKING:
    from spearmint.models.promoting import Decision

KEPT = 3
"""Exit code if no model was promoted."""


@cloup.command()
@config_argument
@click.option(
    "--version",
    "number",
    cls=PlainOption,
    type=click.IntRange(1),
    metavar="N",
    help="Decide about version N, also if a rollback left it. Default: the newest version.",
)
@click.option("--dry-run", is_flag=True, help="Print the decisions, and change nothing.")
@click.option("--region", metavar="NAME", help="Decide about this region only. Default: all.")
@json_option
def promote(
    config: Path, number: int | None, dry_run: bool, region: str | None, as_json: bool
) -> int:
    """Make the newest model current if it is better by more than its standard error.

    Otherwise the current model stays. models/REGION/current is a link, which is replaced by a
    rename: readers see the old model or the new one. The exit code is 0 if any model was promoted,
    3 if all were kept, and 1 for a failure.

    \b
    Examples:
      spearmint promote examples/regions
      spearmint promote --dry-run --region=us examples/regions
    """
    from spearmint.models.promoting import promote as decide

    experiment, stores = model_stores(config, region)
    decisions = []
    try:  # what was promoted before a failure is printed
        for store in stores:
            decision = decide(store, maximize=experiment.maximize, number=number, dry_run=dry_run)
            if decision is None:
                continue
            decisions.append(decision)
            if not as_json:
                click.echo(_line(decision, dry_run=dry_run))
    finally:
        if as_json and decisions:
            click.echo(json.dumps([decision.to_json() for decision in decisions], indent=2))
    if not decisions:
        raise InputError(
            f"no model in {experiment.directory / 'models'}",
            f"Train one: {next_command('final', experiment.directory)}",
        )
    return 0 if any(decision.promotes for decision in decisions) else KEPT


def _line(decision: Decision, *, dry_run: bool) -> str:
    would = "would be " if dry_run else ""
    what = f"{would}promoted" if decision.promotes else "not promoted"
    return f"{decision.region}: version {decision.version.number} {what}: {decision.reason}"
