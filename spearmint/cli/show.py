"""``spearmint show``: show single trials with all that is known about them."""

from __future__ import annotations

import json
import sys

import click
import cloup

from spearmint.cli.options import (
    json_option,
    storage_option,
    trial_region_option,
    trials_argument,
)
from spearmint.cli.setting_options import PlainOption
from spearmint.cli.targets import find_trials, one_session, read_numbers


@cloup.command()
@trials_argument
@click.option(
    "--lines",
    cls=PlainOption,
    type=click.IntRange(0),
    metavar="N",
    default=10,
    help="Show the last N lines of the output. Default: 10.",
)
@trial_region_option
@storage_option
@json_option
def show(
    words: tuple[str, ...], lines: int, region: str | None, storage: str | None, as_json: bool
) -> None:
    """Show trials: parameters, result, each job with host and GPUs, output, curve and notes.

    \b
    Examples:
      spearmint show examples/digits 7
      spearmint show 7 9 --region us --json
    """
    from spearmint.view.trial_page import trial_data, trial_lines

    directory, numbers = read_numbers(words)
    session = one_session(directory, storage, region)
    trials = session.study.annotated(find_trials(session, numbers))
    pages = [trial_data(session, trial, lines) for trial in trials]
    if as_json:
        click.echo(json.dumps(pages if len(pages) > 1 else pages[0], indent=2))
        return
    bars = (sys.stdout.encoding or "").lower().startswith("utf")
    texts = (trial_lines(*pair, bars=bars) for pair in zip(trials, pages, strict=True))
    click.echo("\n\n".join(map("\n".join, texts)))
