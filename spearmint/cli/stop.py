"""``spearmint stop``: stop single trials."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Callable

import click
import cloup

from spearmint.cli.options import (
    json_option,
    storage_option,
    trial_region_option,
    trials_argument,
)
from spearmint.cli.targets import find_trials, one_session, read_numbers
from spearmint.errors import InputError

_TIMEOUT_S = 60.0
_STEP_S = 0.2


@cloup.command()
@trials_argument
@click.option(
    "--reason", metavar="TEXT", help="Store this text as the reason. Default: your user name."
)
@trial_region_option
@storage_option
@json_option
def stop(
    words: tuple[str, ...],
    reason: str | None,
    region: str | None,
    storage: str | None,
    as_json: bool,
) -> None:
    """Stop running, queued or paused trials, and continue the search.

    A stopped trial is broken and is not retried. The search learns nothing from it, and
    evaluates another point. A trial that ends first keeps its value. This works with every
    driver, also while no search runs.

    \b
    Examples:
      spearmint stop examples/digits 7
      spearmint stop 7 9 --reason "data was replaced"
    """
    from spearmint.cli.deliver import deliver, later
    from spearmint.model import TrialState
    from spearmint.requests.inbox import Action, Request

    directory, numbers = read_numbers(words)
    session = one_session(directory, storage, region)
    for trial in find_trials(session, numbers):
        if trial.state not in (TrialState.RUNNING, TrialState.PAUSED):
            raise InputError(f"{trial.label} is {trial.state}; it does not run", "")
    text = f"stopped by {getpass.getuser()}" + (f": {' '.join(reason.split())}" if reason else "")
    name = session.experiment.region
    request = Request(action=Action.STOP, region=name, trials=tuple(numbers), reason=text)
    delivery = deliver(directory, storage, [request])
    if delivery.is_applied:
        unfinished = (TrialState.RUNNING, TrialState.PAUSED)
        _wait(lambda: all(t.state not in unfinished for t in find_trials(session, numbers)))
    ended = find_trials(session, numbers)
    if as_json:
        rows = [trial.to_json() for trial in ended]
        click.echo(json.dumps({"trials": rows, "applied": delivery.is_applied}, indent=2))
        return
    for trial in ended:
        outcome = f"ended before, with value {trial.value!r}" if trial.value is not None else ""
        outcome = outcome or trial.reason or str(trial.state)
        click.echo(f"{trial.label}: {outcome}")
    for note in (*delivery.notes, later(delivery)):
        if note:
            click.echo(note)


def _wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not is_done() and time.monotonic() < deadline:
        time.sleep(_STEP_S)
