"""``spearmint retry``: evaluate the points of failed trials once more."""

from __future__ import annotations

import json

import click
import cloup

from spearmint.cli.options import json_option, storage_option, trial_region_option
from spearmint.cli.targets import find_trials, one_session, read_number, split_directory
from spearmint.errors import InputError, next_command


@cloup.command()
@cloup.argument(
    "words",
    metavar="[DIR] [TRIAL]...",
    nargs=-1,
    help="The directory of config.pb (default: the current one), then numbers of trials.",
)
@click.option("--broken", is_flag=True, help="Retry all failed (broken) trials.")
@click.option(
    "--reason",
    metavar="TEXT",
    help="With --broken: only those whose reason contains this text. Default: any reason.",
)
@trial_region_option
@storage_option
@json_option
def retry(
    words: tuple[str, ...],
    broken: bool,
    reason: str | None,
    region: str | None,
    storage: str | None,
    as_json: bool,
) -> None:
    """Evaluate the points of failed (broken) trials once more, also while the search runs.

    Each point gets a new trial, and the search no longer learns from the failure. A point that
    another trial has evaluated is left out.

    \b
    Examples:
      spearmint retry examples/digits 7 9
      spearmint retry examples/digits --broken --reason MemoryError
    """
    from spearmint.cli.deliver import deliver, later
    from spearmint.model import TrialState
    from spearmint.requests.inbox import Action, Request

    directory, rest = split_directory(words, str.isdecimal)
    numbers = [read_number(word) for word in rest]
    if bool(numbers) == broken:
        raise click.UsageError("Name trials, such as 7 9, or give --broken.")
    if reason is not None and not broken:
        raise click.UsageError("--reason needs --broken.")
    session = one_session(directory, storage, region)
    if broken:
        found = session.study.last(TrialState.BROKEN)
        found = [trial for trial in found if reason is None or reason in trial.reason]
    else:
        found = find_trials(session, numbers)
    for trial in found:
        if trial.state is not TrialState.BROKEN:
            raise InputError(
                f"{trial.label} is {trial.state}, not broken",
                f"To evaluate its point again: {next_command('add', '--repeat')} ...",
            )
    chosen = tuple(trial.id for trial in found)
    if chosen:
        name = session.experiment.region
        request = Request(action=Action.RETRY, region=name, trials=chosen)
        delivery = deliver(directory, storage, [request])
    if as_json:
        applied = not chosen or delivery.is_applied
        click.echo(json.dumps({"trials": list(chosen), "applied": applied}, indent=2))
    elif not chosen:
        click.echo("There is no such broken trial.")
    else:
        names = ", ".join(map(str, chosen))
        click.echo(
            later(delivery)
            or "\n".join(delivery.notes)
            or f"Queued the points of trial {names}, unless another trial has evaluated them."
        )
