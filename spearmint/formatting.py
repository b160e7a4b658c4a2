"""Format values, durations and text for output."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from spearmint.model import Params, Trial, Value


def format_duration(seconds: float) -> str:
    """Return ``4.2 s``, ``3 min 5 s``, ``2 h 15 min`` or ``3 d 4 h``."""
    if seconds < 59.95:  # 59.95 s and more would round to 60.0 s
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit, size, part, part_size in (("d", 86400, "h", 3600), ("h", 3600, "min", 60)):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // part_size} {part}"
    return f"{whole // 60} min {whole % 60} s"


_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def column_name(name: str, names: Container[str], others: Container[str]) -> str:
    """Return the column of the variable ``name``: ``params_NAME`` if ``others`` have its name.

    It has more prefixes if another variable, of ``names``, has that name.
    """
    if name not in others:
        return name
    while name in names or name in others:
        name = f"params_{name}"
    return name


def plain(text: str) -> str:
    """Return the output of a program without colours and control characters."""
    return _CONTROL.sub("\N{MIDDLE DOT}", _ANSI.sub("", text.replace("\r\n", "\n")))


def indented(text: str, by: str = "  ") -> str:
    """Return the lines of ``text`` as plain text, each after ``by``."""
    return "\n".join(f"{by}{plain(line)}" for line in text.splitlines())


_MOST_VALUES = 20  # of a variable in a line of a table or a log
TABLE_DIGITS = 4
"""Significant digits of a parameter in a table; ``best`` and ``export`` have more."""


def format_params(params: Params) -> str:
    """Return ``lr=0.01 units=64,32`` for a line of a table or a log."""
    return " ".join(f"{name}={format_vector(values)}" for name, values in params.items())


def format_vector(values: Sequence[Value], digits: int = 6) -> str:
    """Return ``64,32``; of more than 20 values the first eight and their number."""
    shown = values if len(values) <= _MOST_VALUES else values[:8]
    text = ",".join(format_value(value, digits) for value in shown)
    return text if shown is values else f"{text},... ({len(values):,} values)"


def constraint_text(trial: Trial, name: str) -> str:
    """Return the value of a constraint, as ``91.2 infeasible`` outside of its limits.

    ``-`` if the trial has none.
    """
    if name not in trial.constraints:
        return "-"
    mark = " infeasible" if name in trial.excess else ""
    return format_value(float(trial.constraints[name])) + mark


def objectives_text(trial: Trial) -> str:
    """Return ``error=0.1 latency_ms=3`` for a trial with several objectives."""
    return " ".join(f"{name}={format_value(v)}" for name, v in trial.objectives.items())


def infeasible_text(trial: Trial) -> str:
    """Return ``infeasible: memory_gb=91.2`` for a line of a log; empty if it is feasible."""
    values = (f"{name}={format_value(trial.constraints[name])}" for name in trial.excess)
    return "" if trial.is_feasible else f"infeasible: {' '.join(values)}"


def format_value(value: Value, digits: int = 6) -> str:
    """Return a value as text of one line; a float has at most ``digits`` significant digits."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return plain(str(value)).replace("\n", "\N{MIDDLE DOT}").replace("\t", " ")
