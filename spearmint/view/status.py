"""The screen of ``spearmint status``: trials by state, the best ones, why others failed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spearmint.formatting import (
    format_duration,
    format_params,
    format_value,
    objectives_text,
    plain,
)
from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.lock import holder_of
from spearmint.store.session import Session
from spearmint.view.gpu_use import (
    LATEST,
    SUMMARISED,
    busy_text,
    gpu_uses,
    summary_lines,
    summary_of,
)
from spearmint.view.hosts import avoided_hosts, avoided_lines
from spearmint.view.rungs import rung_lines, rungs_data
from spearmint.view.strategy import region_lines, strategy_data, strategy_lines
from spearmint.view.tables import broken_lines, note_lines, trial_table

_WATCH_S = 2.0
_MOST_NOTES = 10
_MOST_POINTS = 5
_COLUMNS = ("complete", "pruned", "broken", "paused", "running", "queued")
_RARE = {"pruned", "paused", "queued"}  # shown if there are any


def watch_status(console: Console, sessions: list[Session], *, top: int, broken: int) -> None:
    """Show the search until it ends."""
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while True:
            runs = holder_of(sessions[0].layout) is not None
            live.update(status_screen(sessions, top=top, broken=broken), refresh=True)
            if not runs:
                return
            time.sleep(_WATCH_S)


def _is_queued(session: Session, trial: Trial) -> bool:
    """Return whether an unfinished trial was submitted and its runner has not started."""
    return not session.layout.folder(trial.id).runner.exists()


def _counts(session: Session, unfinished: Iterable[Trial]) -> dict[str, int]:
    """Return the number of trials by state; queued trials do not count as running.

    Only a search with rungs has paused trials.
    """
    queued = sum(_is_queued(session, trial) for trial in unfinished)
    counts = {str(state): n for state, n in session.study.counts().items()}
    if session.experiment.fidelity is None:
        del counts["paused"]
    return {**counts, "running": counts["running"] - queued, "queued": queued}


def status_data(sessions: list[Session]) -> dict[str, object]:
    """Return the state of the search for JSON: trials by state, seconds, best and broken trials."""
    first = sessions[0]
    about = {
        "experiment": first.experiment.name,
        "directory": str(first.layout.root),
        "controller": holder_of(first.layout),
        "avoided_hosts": avoided_hosts(first.layout),
        **({"require": first.experiment.require} if first.experiment.linear else {}),
    }
    if not first.experiment.region:
        return {**about, **_search_data(first)}
    regions = [{"region": s.experiment.region, **_search_data(s)} for s in sessions]
    return {**about, "regions": regions}


def _search_data(session: Session) -> dict[str, object]:
    study = session.study
    best = study.annotated(study.best(None if study.experiment.has_front else 1))
    return {
        "trials": _counts(session, study.last(TrialState.RUNNING)),
        "queued_points": _queued_points(session),
        "seconds": study.seconds(),
        **_gpu_data(session),
        **rungs_data(study),
        **strategy_data(study),
        **_leaders(study.experiment, best),
        "broken": [trial.to_json() for trial in study.annotated(study.last(TrialState.BROKEN))],
    }


def _gpu_data(session: Session) -> dict[str, object]:
    """Return how busy the GPUs of the last trials were; empty if that is not known."""
    summary = summary_of(_latest_uses(session).values())
    return {"gpu_use": summary.to_json()} if summary is not None else {}


def _leaders(experiment: Experiment, best: list[Trial]) -> dict[str, object]:
    """Return the best trial, or the Pareto front of several objectives."""
    if experiment.has_front:
        return {"front": [trial.to_json() for trial in best]}
    return {"best": best[0].to_json() if best else None}


def status_screen(sessions: list[Session], *, top: int, broken: int) -> RenderableType:
    """Return the screen: the trials of one search, or one line per region."""
    first, holder = sessions[0], holder_of(sessions[0].layout)
    runs = f"running as process {holder.get('pid', '?')}" if holder is not None else "not running"
    unfinished = [session.study.last(TrialState.RUNNING) for session in sessions]
    by_search = list(map(_counts, sessions, unfinished))
    total: Counter[str] = Counter()
    for part in by_search:
        total.update(part)
    counts = ", ".join(f"{n} {state}" for state, n in total.items() if n or state not in _RARE)
    name = first.experiment.study_name if len(sessions) == 1 else first.experiment.name
    regions = f"{len(sessions)} regions, " if len(sessions) > 1 else ""
    seconds = format_duration(sum(session.study.seconds() for session in sessions))
    head = Text(f"{name}: {runs}; {regions}{counts}; {seconds} of trial time")
    if first.experiment.linear:
        head.append(f"\nRequire: {'; '.join(first.experiment.require)}")
    below = [*_gpu_parts(sessions), *_host_parts(first)]
    if len(sessions) == 1:
        return Group(head, *_trial_parts(first, unfinished[0], top, broken), *below)
    strategy = map(Text, region_lines([session.study for session in sessions]))
    return Group(head, *strategy, Text(), _region_table(sessions, by_search), *below)


def _gpu_parts(sessions: list[Session]) -> Iterable[RenderableType]:
    uses = [use for session in sessions for use in _latest_uses(session).values()]
    lines = summary_lines(summary_of(uses))
    if lines:
        yield Text()
    for line in lines:
        yield Text(line)


def _latest_uses(session: Session) -> dict[int, dict[str, Any]]:
    study = session.study
    trials = [
        trial
        for state in SUMMARISED
        if state is not TrialState.PAUSED or session.experiment.fidelity is not None
        for trial in study.last(state, LATEST)
    ]
    return gpu_uses(session.layout, trials)


def _host_parts(session: Session) -> Iterable[RenderableType]:
    lines = list(avoided_lines(session.layout))
    if lines:
        yield Text("\nHosts that trials avoid")
    for line in lines:
        yield Text(line)


def _trial_parts(
    session: Session, unfinished: list[Trial], top: int, show_broken: int
) -> Iterable[RenderableType]:
    experiment = session.experiment
    best = session.study.annotated(session.study.best(top, feasible=False) if top else [])
    unfinished = session.study.annotated(unfinished)
    yield from map(Text, rung_lines(session.study))
    yield from map(Text, strategy_lines(session.study))
    if not best and (highest := session.study.at_highest_rung(top)):
        yield Text(f"\n{_rung_heading(experiment, highest[0])}")
        yield trial_table(highest, experiment.variables, _gpu_busy(session, highest))
    if best:
        heading = "Best trials" if not experiment.has_front else _front_heading(session, best)
        yield Text(f"\n{heading if best[0].is_feasible else 'No trial is feasible; nearest'}")
        yield trial_table(best, experiment.variables, _gpu_busy(session, best))
    queued = [trial for trial in unfinished if _is_queued(session, trial)]
    running = [trial for trial in unfinished if trial not in queued]
    for heading, part in (("Unfinished", running), ("Queued", queued)):
        if part:
            yield Text(f"\n{heading} trials")
            yield trial_table(part, experiment.variables, _gpu_busy(session, part))
    yield from _point_parts(session)
    lines = broken_lines(session.study.last(TrialState.BROKEN, show_broken) if show_broken else [])
    if lines:
        yield Text("\nFailed (broken) trials")
    for line in lines:
        yield Text(line)
    notes = note_lines(session.study.noted())
    if notes:
        yield Text("\nNotes")
    for line in notes[-_MOST_NOTES:]:
        yield Text(line)


def _queued_points(session: Session) -> list[dict[str, Any]]:
    """Return the points of ``add`` and of config.pb that wait for a trial, the next one first."""
    return session.study.queued_points() if session.study.has_queued() else []


def _point_parts(session: Session) -> Iterable[RenderableType]:
    points = _queued_points(session)
    if points:
        yield Text("\nPoints that are evaluated next")
    for point in points[:_MOST_POINTS]:
        values = " ".join(f"{name}={format_value(value)}" for name, value in point.items())
        yield Text(f"  {plain(values)}")
    if len(points) > _MOST_POINTS:
        yield Text(f"  and {len(points) - _MOST_POINTS} more")


def _gpu_busy(session: Session, trials: Iterable[Trial]) -> dict[int, str]:
    """Return the share of the time in which GPUs were busy, as text, by trial."""
    uses = gpu_uses(session.layout, trials)
    known = {number: use["gpu_busy"] for number, use in uses.items()}
    return {number: busy_text(share) for number, share in known.items() if share is not None}


def _rung_heading(experiment: Experiment, trial: Trial) -> str:
    """Return the heading of the trials of the highest rung that any reached."""
    passed = experiment.fidelity.place(len(trial.rungs)) if experiment.fidelity else ""
    return f"No trial is complete; best trials at {passed}"


def _front_heading(session: Session, shown: list[Trial]) -> str:
    size = len(session.study.front())
    return "Pareto front" + (f", {len(shown)} of {size} trials" if size > len(shown) else "")


def _region_table(sessions: list[Session], by_search: list[dict[str, int]]) -> Table:
    table = Table(box=None, pad_edge=False)
    columns = [name for name in _COLUMNS if all(name in counts for counts in by_search)]
    for heading in ("region", *columns, "best", "trial"):
        table.add_column(heading, justify="left" if heading == "region" else "right")
    table.add_column("parameters")
    for session, counts in zip(sessions, by_search, strict=True):
        best = session.study.best()
        table.add_row(
            session.experiment.region,
            *(str(counts[state]) for state in columns),
            *(_best_cells(best[0]) if best else ("-", "-", "")),
        )
    return table


def _best_cells(best: Trial) -> tuple[str | Text, ...]:
    value = objectives_text(best) or format_value(best.value or 0.0)
    return value, str(best.id), Text(format_params(best.params))
