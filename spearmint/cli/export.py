"""``spearmint export``: write all trials as CSV or JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO

import click
import cloup

from spearmint.cli.options import config_argument, region_option, storage_option


@cloup.command()
@config_argument
@click.option("--csv", "form", flag_value="csv", default="csv", help="Write CSV, the default.")
@click.option("--json", "form", flag_value="json", help="Write JSON.")
@click.option(
    "-o",
    "--output",
    type=click.File("w", encoding="utf-8", errors="backslashreplace", atomic=True),
    default="-",
    metavar="FILE",
    help="Write to this file. Default: standard output.",
)
@region_option
@storage_option
def export(
    config: Path, form: str, output: IO[str], region: str | None, storage: str | None
) -> None:
    """Write all trials as CSV or JSON.

    Each trial has its number, state, value, duration in seconds, parameters, and the reason if it
    failed. With rungs, it also has the steps that it trained, and the value and the seconds of each
    part; with GPUs, how busy they were.

    \b
    Examples:
      spearmint export --csv -o trials.csv examples/digits
      spearmint export --json examples/digits
    """
    from spearmint.store.session import read_sessions
    from spearmint.view.facts import trial_facts
    from spearmint.view.tables import trials_csv

    sessions = read_sessions(config, storage, region)
    trials, facts = [], []
    for session in sessions:
        found = session.study.annotated(session.study.trials())
        trials += found
        facts += [trial_facts(session, trial, flat=form == "csv") for trial in found]
    if form == "json":
        rows = [{**trial.to_json(), **more} for trial, more in zip(trials, facts, strict=True)]
        text = json.dumps(rows, indent=2) + "\n"
    else:
        text = trials_csv(trials, sessions[0].experiment.variables, facts)
    output.write(text)
