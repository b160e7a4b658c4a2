"""``spearmint best``: the best trial."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spearmint.cli.options import config_argument, json_option, storage_option
from spearmint.errors import SpearmintError
from spearmint.model import format_value
from spearmint.session import read_session
from spearmint.study import best_trial


@click.command()
@config_argument
@storage_option
@json_option
def best(config: Path, storage: str | None, as_json: bool) -> None:
    """Print the best trial of the search in DIR.

    \b
    Examples:
      spearmint best examples/digits
      spearmint best --json examples/digits
    """
    session = read_session(config, storage)
    trial = best_trial(session.study.trials(), maximize=session.experiment.maximize)
    if trial is None:
        raise SpearmintError(
            f"no trial of {session.experiment.name!r} is complete yet",
            f"Watch it: spearmint status {session.layout.root}",
        )
    if as_json:
        click.echo(json.dumps(trial.to_json(), indent=2))
        return
    click.echo(f"value: {trial.value!r}\ntrial: {trial.id}")
    for name, values in trial.params.items():
        click.echo(f"{name}: {', '.join(format_value(value) for value in values)}")
