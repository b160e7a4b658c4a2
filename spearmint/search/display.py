"""Show a search: one line, a table for notebooks, and a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from spearmint.errors import InputError
from spearmint.formatting import TABLE_DIGITS, column_name, constraint_text, format_value, plain
from spearmint.model import Trial, TrialState, best_trial, json_number, leading, pareto_front
from spearmint.view.facts import rung_facts
from starmint import install_command

if TYPE_CHECKING:
    import pandas as pd

    from spearmint.fidelity import Fidelity

_ROWS = 10
_FACTS = ("state", "value", "seconds", "reason")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTrial(Trial):
    """A trial of a space in Python: ``params`` has the values that the function received."""

    params: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the trial as data, with one value for each variable."""
        same = Trial.to_json(_with_vectors(self))
        return {**same, "value": json_number(self.value), "params": dict(self.params)}


def _with_vectors(trial: PointTrial) -> Trial:
    fields = {name: getattr(trial, name) for name in Trial.__dataclass_fields__}
    return Trial(**{**fields, "params": {}})


def summary(where: str, trials: Sequence[Trial], *, maximize: bool) -> str:
    """Return the state of a search in one line, ``DIRECTORY: 12 complete, best 0.25 at lr=0.1``."""
    counts = [
        f"{number} {state}"
        for state in TrialState
        if (number := sum(trial.state is state for trial in trials))
    ]
    words = [", ".join(counts) or "no trials"]
    best = best_trial(trials, maximize=maximize)
    if best is not None and best.value is not None:
        words.append(f"best {format_value(best.value)} (trial {best.id}) at {_point(best)}")
    elif front := pareto_front(trials):
        words.append(f"Pareto front of {len(front)}")
    elif any(trial.value is not None for trial in trials):
        words.append("none feasible")
    return f"{where}: {', '.join(words)}"


def _point(trial: Trial) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in trial.params.items())


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_text, value))
    is_number = isinstance(value, float | int) and not isinstance(value, bool)
    return format_value(value, TABLE_DIGITS) if is_number else str(value)


def as_html(where: str, trials: Sequence[Trial], *, maximize: bool) -> str:
    """Return the summary and a table of the best trials as HTML."""
    title = f"<p><b>Search</b> {escape(summary(where, trials, maximize=maximize))}</p>"
    ranked = leading(trials, maximize=maximize)
    best = ranked[:_ROWS]
    failed = [trial for trial in trials if trial.state is TrialState.BROKEN]
    note = (
        f"<p>trial {failed[-1].id} failed: {escape(plain(failed[-1].reason))}</p>" if failed else ""
    )
    if not best:
        return f"<div>{title}{note}</div>"
    names = list(dict.fromkeys(name for trial in best for name in trial.params))
    limited = list(best[0].constraints)
    goals = list(best[0].objectives)
    columns = ("trial", *(goals or ["value"]), *limited, *names, "seconds")
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(trial, names, limited))
        + "</tr>"
        for trial in best
    )
    more = len(ranked) - len(best)
    rest = f"<p>and {more} more</p>" if more else ""
    return (
        f"<div>{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"{rest}{note}</div>"
    )


def _cells(trial: Trial, names: Sequence[str], limited: Sequence[str]) -> list[str]:
    seconds = "" if trial.seconds is None else f"{trial.seconds:.1f}"
    values = [_text(trial.params[name]) if name in trial.params else "" for name in names]
    limits = [constraint_text(trial, name) for name in limited]
    goals: list[float | None] = [*trial.objectives.values()] or [trial.value]
    return [str(trial.id), *map(_text, goals), *limits, *values, seconds]


def as_dataframe(trials: Sequence[Trial], fidelity: Fidelity | None = None) -> pd.DataFrame:
    """Return a DataFrame with the columns of ``spearmint export``, indexed by trial number.

    With rungs, there are also ``steps_done`` and a column for the value and the seconds of each
    rung. A variable with the name of another column becomes ``params_NAME``.

    Raises:
        InputError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        fix = f"Install it: {install_command('pandas')}"
        raise InputError("dataframe() needs pandas", fix) from None
    index = pd.Index([trial.id for trial in trials], name="trial")
    if not trials:
        return pd.DataFrame(columns=list(_FACTS), index=index)
    rungs = [dict(rung_facts(fidelity, t, flat=True)) if fidelity else {} for t in trials]
    rows = [_row(t, more) for t, more in zip(trials, rungs, strict=True)]
    if fidelity is not None:  # a constraint can have the name of one of these columns
        rows = [row | {**more, **row} for row, more in zip(rows, rungs, strict=True)]
    return pd.DataFrame(rows, index=index)


def _row(trial: Trial, more: Iterable[str]) -> dict[str, Any]:
    """Return the cells of a trial, whose variables have no name of ``more`` columns."""
    row: dict[str, Any] = {name: getattr(trial, name) for name in _FACTS}
    row["state"] = str(trial.state)
    row |= trial.objectives
    if trial.constraints:
        row |= {**trial.constraints, "feasible": trial.is_feasible}
    columns = _columns(trial)
    names = {name for name, _ in columns}
    for name, value in columns:
        row[column_name(name, names, (*_FACTS, *more, "trial"))] = value
    return row


def _columns(trial: Trial) -> list[tuple[str, Any]]:
    """Return the value of each element of each variable."""
    columns: list[tuple[str, Any]] = []
    params: Mapping[str, Any] = trial.params
    for name, value in params.items():
        if not isinstance(value, tuple):
            columns.append((name, value))
        elif len(value) == 1:
            columns.append((name, value[0]))
        else:
            columns.extend((f"{name}[{i}]", each) for i, each in enumerate(value))
    return columns
