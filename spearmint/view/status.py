"""The screen of ``spearmint status``: trials by state, the best ones, why others failed."""

from __future__ import annotations

import time
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spearmint.formatting import format_duration, format_params, format_value
from spearmint.model import Trial, TrialState, best_trial, ranking
from spearmint.store.lock import holder_of
from spearmint.store.session import Session
from spearmint.view.tables import broken_lines, trial_table

_WATCH_S = 2.0


def watch_status(console: Console, sessions: list[Session], *, top: int, broken: int) -> None:
    """Show the search until it ends or Ctrl-C."""
    try:
        with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
            while True:
                runs = holder_of(sessions[0].layout) is not None
                live.update(status_screen(sessions, top=top, broken=broken), refresh=True)
                if not runs:
                    return
                time.sleep(_WATCH_S)
    except KeyboardInterrupt:
        return


def _counts(trials: Iterable[Trial]) -> dict[str, int]:
    states = [trial.state for trial in trials]
    return {str(state): states.count(state) for state in TrialState}


def status_data(sessions: list[Session]) -> dict[str, object]:
    """Return the state of the search for JSON: trials by state, seconds, best and broken trials."""
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


def status_screen(sessions: list[Session], *, top: int, broken: int) -> RenderableType:
    """Return the screen: the trials of one search, or one line per region."""
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
        return Group(head, *_trial_parts(first, trials, top, broken))
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
        yield Text("\nUnfinished trials")
        yield trial_table(running, experiment.variables)
    broken = [trial for trial in trials if trial.state is TrialState.BROKEN]
    lines = broken_lines(broken[-show_broken:] if show_broken else [])
    if lines:
        yield Text("\nFailed (broken) trials")
    for line in lines:
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
