"""``spearmint status``: where a search stands."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spearmint.cli.options import config_argument, json_option, region_option, storage_option
from spearmint.formatting import format_duration, format_params, format_value
from spearmint.model import Trial, TrialState, best_trial, ranking
from spearmint.store.lock import holder_of
from spearmint.store.session import Session, read_sessions
from spearmint.view.progress import make_console
from spearmint.view.tables import broken_lines, trial_table

_WATCH_S = 2.0


@click.command()
@config_argument
@click.option(
    "--top",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="How many of the best trials to show.",
)
@click.option(
    "--broken",
    "show_broken",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="How many broken ones.",
)
@click.option(
    "--watch", is_flag=True, help="On a terminal: keep it up to date while the search runs."
)
@region_option
@storage_option
@json_option
def status(
    config: Path,
    top: int,
    show_broken: int,
    watch: bool,
    region: str | None,
    storage: str | None,
    as_json: bool,
) -> None:
    """Show trials by state, the best ones, and why others broke, of the search in DIR.

    \b
    Examples:
      spearmint status --watch examples/digits
      spearmint status --json examples/digits
    """
    sessions = read_sessions(config, storage, region)
    if as_json:
        click.echo(json.dumps(_data(sessions), indent=2))
        return
    console = make_console()
    if watch and console.is_terminal:
        _watch(console, sessions, top, show_broken)
    else:
        console.print(_view(sessions, top, show_broken), soft_wrap=True)


def _watch(console: Console, sessions: list[Session], top: int, show_broken: int) -> None:
    """Show the search until it ends or Ctrl-C."""
    try:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                runs = holder_of(sessions[0].layout) is not None
                live.update(_view(sessions, top, show_broken), refresh=True)
                if not runs:
                    return
                time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        return


def _counts(trials: Iterable[Trial]) -> dict[str, int]:
    states = [trial.state for trial in trials]
    return {str(state): states.count(state) for state in TrialState}


def _data(sessions: list[Session]) -> dict[str, object]:
    first = sessions[0]
    about = {
        "experiment": first.experiment.name,
        "directory": str(first.layout.root),
        "controller": holder_of(first.layout),
    }
    if not first.experiment.region:
        return {**about, **_search_data(first)}
    regions = [{"region": s.experiment.region, **_search_data(s)} for s in sessions]
    return {**about, "regions": regions}


def _search_data(session: Session) -> dict[str, object]:
    trials = session.study.trials()
    best = best_trial(trials, maximize=session.experiment.maximize)
    return {
        "trials": _counts(trials),
        "seconds": _seconds(trials),
        "best": best.to_json() if best else None,
        "broken": [trial.to_json() for trial in trials if trial.state is TrialState.BROKEN],
    }


def _seconds(trials: Iterable[Trial]) -> float:
    return sum(trial.seconds or 0.0 for trial in trials)


def _view(sessions: list[Session], top: int, show_broken: int) -> RenderableType:
    """Return the whole screen: of one search its trials, of regions a line each."""
    first, holder = sessions[0], holder_of(sessions[0].layout)
    runs = f"running as process {holder.get('pid', '?')}" if holder is not None else "not running"
    by_search = [session.study.trials() for session in sessions]
    trials = [trial for part in by_search for trial in part]
    counts = ", ".join(
        f"{n} {state}" for state, n in _counts(trials).items() if n or state != "pruned"
    )
    name = first.experiment.study_name if len(sessions) == 1 else first.experiment.name
    regions = f"{len(sessions)} regions, " if len(sessions) > 1 else ""
    seconds = format_duration(_seconds(trials))
    head = Text(f"{name}: {runs}; {regions}{counts}; {seconds} of trial time")
    if len(sessions) == 1:
        return Group(head, *_trial_parts(first, trials, top, show_broken))
    return Group(head, Text(), _region_table(sessions, by_search))


def _trial_parts(
    session: Session, trials: list[Trial], top: int, show_broken: int
) -> Iterable[RenderableType]:
    experiment = session.experiment
    best = ranking(trials, maximize=experiment.maximize)[:top]
    if best:
        yield Text("\nBest trials")
        yield trial_table(best, experiment.variables)
    running = [trial for trial in trials if trial.state is TrialState.RUNNING]
    if running:
        yield Text("\nNot finished")
        yield trial_table(running, experiment.variables)
    broken = [trial for trial in trials if trial.state is TrialState.BROKEN]
    for line in broken_lines(broken[-show_broken:] if show_broken else []):
        yield Text(line)


def _region_table(sessions: list[Session], by_search: list[list[Trial]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("region", "complete", "pruned", "broken", "running", "best", "trial"):
        table.add_column(heading, justify="left" if heading == "region" else "right")
    table.add_column("parameters")
    for session, trials in zip(sessions, by_search, strict=True):
        counts = _counts(trials)
        best = best_trial(trials, maximize=session.experiment.maximize)
        table.add_row(
            session.experiment.region,
            *(str(counts[state]) for state in ("complete", "pruned", "broken", "running")),
            *(_best_cells(best) if best is not None else ("-", "-", "")),
        )
    return table


def _best_cells(best: Trial) -> tuple[str | Text, ...]:
    return format_value(best.value or 0.0), str(best.id), Text(format_params(best.params))
