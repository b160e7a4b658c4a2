"""``spearmint status``: where a search stands."""

from __future__ import annotations

import json
from pathlib import Path

import click

from spearmint.cli.options import config_argument, json_option, storage_option
from spearmint.lock import holder_of
from spearmint.model import Trial, TrialState
from spearmint.progress import make_console
from spearmint.session import Session, read_session
from spearmint.study import ranking
from spearmint.tables import broken_lines, trial_table


@click.command()
@config_argument
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Rows to show.")
@click.option(
    "--broken",
    "show_broken",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Broken trials to show, the latest ones.",
)
@storage_option
@json_option
def status(config: Path, top: int, show_broken: int, storage: str | None, as_json: bool) -> None:
    """Show the figures, the best trials and why others broke, for the search in DIR.

    \b
    Examples:
      spearmint status examples/digits
      spearmint status --json examples/digits
    """
    session = read_session(config, storage)
    trials = session.study.trials()
    if as_json:
        click.echo(json.dumps(_data(session, trials), indent=2))
        return
    _print(session, trials, top, show_broken)


def _counts(trials: list[Trial]) -> dict[str, int]:
    return {str(state): sum(trial.state is state for trial in trials) for state in TrialState}


def _data(session: Session, trials: list[Trial]) -> dict[str, object]:
    best = ranking(trials, maximize=session.experiment.maximize)[:1]
    return {
        "experiment": session.experiment.name,
        "directory": str(session.layout.root),
        "controller": holder_of(session.layout),
        "trials": _counts(trials),
        "best": best[0].to_json() if best else None,
        "broken": [trial.to_json() for trial in trials if trial.state is TrialState.BROKEN],
    }


def _print(session: Session, trials: list[Trial], top: int, show_broken: int) -> None:
    console = make_console()
    experiment, holder = session.experiment, holder_of(session.layout)
    runs = f"running as process {holder.get('pid', '?')}" if holder is not None else "not running"
    counts = ", ".join(f"{count} {state}" for state, count in _counts(trials).items())
    console.print(f"{experiment.name}: {runs}; {counts}", markup=False, soft_wrap=True)
    best = ranking(trials, maximize=experiment.maximize)[:top]
    if best:
        console.print("\nBest trials")
        console.print(trial_table(best, experiment.variables))
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    if running:
        console.print("\nNot finished")
        console.print(trial_table(running, experiment.variables))
    broken = [trial for trial in trials if trial.state is TrialState.BROKEN]
    for line in broken_lines(broken[-show_broken:] if show_broken else []):
        console.print(line, markup=False, soft_wrap=True)
