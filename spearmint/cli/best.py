"""``spearmint best``: print the best trial."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import cloup

from spearmint.cli.options import config_argument, json_option, region_option, storage_option
from spearmint.errors import SpearmintError, next_command
from spearmint.formatting import format_value

if TYPE_CHECKING:
    from spearmint.model import Experiment
    from spearmint.store.recommending import Recommendation
    from spearmint.store.session import Session


@cloup.command()
@config_argument
@region_option
@storage_option
@json_option
def best(config: Path, region: str | None, storage: str | None, as_json: bool) -> None:
    """Print the best trial, or the best trial of each region.

    If values are noisy, this is the trial with the best expected value, by a model of all trials.
    Its expected value and the luckiest trial are printed, too.
    With rungs (fidelity), it is the best trial of the highest rung that any reached.
    With constraints, it is the best of the trials that keep them. With several objectives, the
    trials of the Pareto front are printed.

    \b
    Examples:
      spearmint best examples/digits
      spearmint best --json examples/digits
    """
    from spearmint.store.session import read_sessions

    sessions = read_sessions(config, storage, region)
    if sessions[0].experiment.has_front:
        _print_front(sessions, as_json)
        return
    found = [
        replace(recommendation, trial=session.study.annotated([recommendation.trial])[0])
        for session in sessions
        if (recommendation := session.study.recommended()) is not None
    ]
    experiment = sessions[0].experiment
    if not found:
        raise _nothing(sessions)
    if len(sessions) > 1:
        _print_regions(found, experiment, as_json)
    elif as_json:
        click.echo(json.dumps(found[0].to_json(), indent=2))
    else:
        _print(found[0], experiment, _rung(found[0], experiment))


def _rung(found: Recommendation, experiment: Experiment) -> str:
    """Return where the trial waits, if it is not complete: the best of the highest rung."""
    trial = found.trial
    is_complete = str(trial.state) == "complete"
    if experiment.fidelity is None or is_complete:
        return ""
    return f"{experiment.fidelity.place(len(trial.rungs))}; no trial is complete yet"


def _print_front(sessions: list[Session], as_json: bool) -> None:
    from spearmint.view.progress import make_console
    from spearmint.view.tables import trial_table

    trials = [trial for session in sessions for trial in session.study.front()]
    if not trials:
        raise _nothing(sessions)
    if as_json:
        click.echo(json.dumps([trial.to_json() for trial in trials], indent=2))
    else:
        make_console().print(trial_table(trials, sessions[0].experiment.variables))


def _nothing(sessions: list[Session]) -> SpearmintError:
    """Return the error of a search without a feasible trial."""
    complete = any(session.study.best(feasible=False) for session in sessions)
    return SpearmintError(
        f"no trial of {sessions[0].experiment.name!r} is "
        f"{'feasible' if complete else 'complete'} yet",
        f"Show its state: {next_command('status', sessions[0].layout.root)}",
    )


def _print_regions(found: list[Recommendation], experiment: Experiment, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([each.to_json() for each in found], indent=2))
    else:
        from spearmint.view.expectation import expectation
        from spearmint.view.progress import make_console
        from spearmint.view.tables import trial_table

        trials = [each.trial for each in found]
        make_console().print(trial_table(trials, experiment.variables))
        for each in found:
            if rung := _rung(each, experiment):
                click.echo(f"{each.trial.region}: {rung}")
            for text in experiment.violations(each.trial):
                click.echo(f"{each.trial.region}: violates require: {text}")
            for line in expectation(each, maximize=experiment.maximize):
                click.echo(f"{each.trial.region}: {line}")


def _print(found: Recommendation, experiment: Experiment, rung: str = "") -> None:
    from spearmint.view.expectation import expectation

    trial = found.trial
    region = f"region: {trial.region}\n" if trial.region else ""
    click.echo(f"{region}value: {trial.value!r}\ntrial: {trial.id}")
    if rung:
        click.echo(f"rung: {rung}")
    for name, value in trial.constraints.items():
        click.echo(f"{name}: {format_value(value)}")
    for name, values in trial.params.items():
        click.echo(f"{name}: {', '.join(format_value(value) for value in values)}")
    for text in experiment.violations(trial):
        click.echo(f"violates require: {text}")
    for line in expectation(found, maximize=experiment.maximize):
        click.echo(line)
