"""``spearmint best``: print the best trial."""

from __future__ import annotations

import json
from pathlib import Path

import click
import cloup

from spearmint.cli.options import config_argument, json_option, region_option, storage_option
from spearmint.errors import SpearmintError, next_command
from spearmint.formatting import format_value
from spearmint.model import Trial, Variable


@cloup.command()
@config_argument
@region_option
@storage_option
@json_option
def best(config: Path, region: str | None, storage: str | None, as_json: bool) -> None:
    """Print the best trial, or the best trial of each region.

    \b
    Examples:
      spearmint best examples/digits
      spearmint best --json examples/digits
    """
    from spearmint.store.session import read_sessions

    sessions = read_sessions(config, storage, region)
    trials = [trial for session in sessions for trial in session.study.best()]
    if not trials:
        raise SpearmintError(
            f"no trial of {sessions[0].experiment.name!r} is complete yet",
            f"Show its state: {next_command('status', sessions[0].layout.root)}",
        )
    if len(sessions) > 1:
        _print_regions(trials, sessions[0].experiment.variables, as_json)
    elif as_json:
        click.echo(json.dumps(trials[0].to_json(), indent=2))
    else:
        _print(trials[0])


def _print_regions(trials: list[Trial], variables: tuple[Variable, ...], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([trial.to_json() for trial in trials], indent=2))
    else:
        from spearmint.view.progress import make_console
        from spearmint.view.tables import trial_table

        make_console().print(trial_table(trials, variables))


def _print(trial: Trial) -> None:
    region = f"region: {trial.region}\n" if trial.region else ""
    click.echo(f"{region}value: {trial.value!r}\ntrial: {trial.id}")
    for name, values in trial.params.items():
        click.echo(f"{name}: {', '.join(format_value(value) for value in values)}")
