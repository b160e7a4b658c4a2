"""Tables of trials for a terminal, and rows for files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from spearmint.formatting import TABLE_DIGITS, format_value, plain
from spearmint.model import Trial, TrialState, Variable


def trial_table(trials: Sequence[Trial], variables: Sequence[Variable]) -> Table:
    """Return a table with one row per trial and one column per variable, and regions if any."""
    table = Table(box=None, pad_edge=False)
    has_regions = any(trial.region for trial in trials)
    if has_regions:
        table.add_column("region")
    table.add_column("trial", justify="right")
    table.add_column("value", justify="right")
    table.add_column("seconds", justify="right")
    for variable in variables:
        table.add_column(Text(variable.name), justify="right")
    for trial in trials:
        values = (trial.params[variable.name] for variable in variables)
        table.add_row(
            *([trial.region] if has_regions else []),
            str(trial.id),
            format_value(trial.value) if trial.value is not None else "-",
            f"{trial.seconds:.1f}" if trial.seconds is not None else "-",
            *(Text(",".join(format_value(x, TABLE_DIGITS) for x in vector)) for vector in values),
        )
    return table


def broken_lines(trials: Iterable[Trial]) -> list[str]:
    """Return the reason of each failed trial, with the last lines of its output indented.

    Output that repeats that of the previous trial is left out.
    """
    lines: list[str] = []
    shown = None
    for trial in trials:
        if trial.state is TrialState.BROKEN:
            lines.append(f"{trial.label} failed: {plain(trial.reason)}")
            if (trial.reason, trial.tail) != shown:
                lines.extend(f"    {plain(line)}" for line in trial.tail.splitlines())
            shown = trial.reason, trial.tail
    return lines


def trials_csv(trials: Sequence[Trial], variables: Sequence[Variable]) -> str:
    """Return trials as CSV with one column per element of each variable."""
    has_regions = any(trial.region for trial in trials)
    keys = [key for variable in variables for key in variable.elements()]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        [
            *(["region"] if has_regions else []),
            "trial",
            "state",
            "value",
            "seconds",
            "reason",
            *keys,
        ]
    )
    for trial in trials:
        values = [value for variable in variables for value in trial.params[variable.name]]
        region = [trial.region] if has_regions else []
        facts = [trial.id, trial.state, _cell(trial.value), _cell(trial.seconds), trial.reason]
        writer.writerow([*region, *facts, *values])
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else repr(value)
