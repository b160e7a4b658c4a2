"""Tables of trials for a terminal, and rows for files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from rich.table import Table
from rich.text import Text

from spearmint.formatting import (
    TABLE_DIGITS,
    column_name,
    constraint_text,
    format_value,
    format_vector,
    plain,
)
from spearmint.model import Trial, TrialState, Variable


def trial_table(
    trials: Sequence[Trial],
    variables: Sequence[Variable],
    gpu_busy: Mapping[int, str] | None = None,
) -> Table:
    """Return a table with one row per trial and one column per variable.

    It has columns for regions, constraints, tags and how busy the GPUs were if there are any.
    """
    table = Table(box=None, pad_edge=False)
    has_regions = any(trial.region for trial in trials)
    if has_regions:
        table.add_column("region")
    table.add_column("trial", justify="right")
    goals = objective_names(trials)
    for name in goals or ["value"]:
        table.add_column(Text(name), justify="right")
    limited = constraint_names(trials)
    for name in limited:
        table.add_column(Text(name), justify="right")
    table.add_column("seconds", justify="right")
    if gpu_busy:
        table.add_column("GPU busy", justify="right")
    for variable in variables:
        table.add_column(Text(variable.name), justify="right")
    has_tags = any(trial.tags for trial in trials)
    if has_tags:
        table.add_column("tags")
    for trial in trials:
        values = (trial.params.get(variable.name, ()) for variable in variables)
        table.add_row(
            *([trial.region] if has_regions else []),
            str(trial.id),
            *_value_cells(trial, goals),
            *(Text(constraint_text(trial, name)) for name in limited),
            f"{trial.seconds:.1f}" if trial.seconds is not None else "-",
            *([gpu_busy.get(trial.id, "-")] if gpu_busy else []),
            *(Text(format_vector(vector, TABLE_DIGITS)) for vector in values),
            *([" ".join(trial.tags)] if has_tags else []),
        )
    return table


def _value_cells(trial: Trial, goals: Sequence[str]) -> list[str]:
    """Return the texts of the objectives."""
    values = [trial.objectives.get(name) for name in goals] or [trial.value]
    return ["-" if value is None else format_value(value) for value in values]


def objective_names(trials: Iterable[Trial]) -> list[str]:
    """Return the names of several objectives; empty for one."""
    return list(dict.fromkeys(name for trial in trials for name in trial.objectives))


def constraint_names(trials: Iterable[Trial]) -> list[str]:
    """Return the names of the constraints that any trial has."""
    return list(dict.fromkeys(name for trial in trials for name in trial.constraints))


def broken_lines(trials: Iterable[Trial]) -> list[str]:
    """Return the reason of each failed trial, with the last lines of its output indented.

    Output that repeats that of the previous trial is left out.
    """
    lines: list[str] = []
    shown = None
    for trial in trials:
        if trial.state is TrialState.BROKEN:
            word = "infeasible" if trial.out_of_memory else "failed"
            lines.append(f"{trial.label} {word}: {plain(trial.reason)}")
            if (trial.reason, trial.tail) != shown:
                lines.extend(f"    {plain(line)}" for line in trial.tail.splitlines())
            shown = trial.reason, trial.tail
    return lines


def note_lines(trials: Iterable[Trial]) -> list[str]:
    """Return a line for each note of each trial."""
    return [f"{trial.label}: {plain(note)}" for trial in trials for note in trial.notes]


def trials_csv(
    trials: Sequence[Trial],
    variables: Sequence[Variable],
    facts: Sequence[Mapping[str, object]] = (),
) -> str:
    """Return trials as CSV with one column per element of each variable.

    Regions, tags and notes have columns if a trial has any. ``facts`` of each trial are the last
    columns. A variable with the name of another column becomes ``params_NAME``.
    """
    facts = facts or [{}] * len(trials)
    more = list(dict.fromkeys(name for each in facts for name in each))
    has_regions = any(trial.region for trial in trials)
    limited, goals = constraint_names(trials), objective_names(trials)
    has_words = any(trial.tags or trial.notes for trial in trials)
    keys = [key for variable in variables for key in variable.elements()]
    start = [
        *(["region"] if has_regions else []),
        "trial",
        "state",
        *(goals or ["value"]),
        *limited,
        *(["feasible"] if limited else []),
        "seconds",
        "reason",
    ]
    end = [*(["tags", "notes"] if has_words else []), *more]
    names = [column_name(key, keys, (*start, *end)) for key in keys]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*start, *names, *end])
    for trial, known in zip(trials, facts, strict=True):
        values = [
            value
            for variable in variables
            for value in trial.params.get(variable.name, ("",) * variable.size)
        ]
        region = [trial.region] if has_regions else []
        values_of = [trial.objectives.get(name) for name in goals] or [trial.value]
        first = [trial.id, trial.state, *map(_cell, values_of), *_limited_cells(trial, limited)]
        words = [" ".join(trial.tags), "; ".join(trial.notes)] if has_words else []
        last = [*words, *(_cell(known.get(name)) for name in more)]
        row = [*region, *first, _cell(trial.seconds), trial.reason, *values, *last]
        writer.writerow(row)
    return out.getvalue()


def _limited_cells(trial: Trial, names: Sequence[str]) -> list[str]:
    """Return the values of the constraints, and whether the trial is feasible."""
    feasible = [str(trial.is_feasible).lower() if trial.constraints else ""] if names else []
    return [*(_cell(trial.constraints.get(name)) for name in names), *feasible]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else repr(value)
