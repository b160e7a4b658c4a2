"""Rows of results as a source has them, and what of them fits a config.pb."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spearmint.config.variables import fits
from spearmint.model import Kind, Params, Value, Variable

_REGION = "region"  # as `spearmint export` names the column


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One result of a source, not checked yet.

    Attributes:
        place: Where it stands, for messages: ``line 7``.
        cells: Numbers or text by element name, ``lr`` or ``X[0]``.
        value: The objective, a number or text; None for a trial that has none.
        seconds: Its duration, a number or text; None if unknown.
    """

    place: str
    cells: Mapping[str, object]
    value: object
    seconds: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows of a source; ``source`` names it for people."""

    source: str
    rows: Sequence[Row]
    unused: Sequence[str] = ()


def only_region(table: Table, region: str) -> Table:
    """Return ``table`` without the rows whose cell ``region`` names another one."""
    rows = [row for row in table.rows if row.cells.get(_REGION, region) == region]
    return replace(table, rows=rows, unused=[name for name in table.unused if name != _REGION])


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A finished trial from elsewhere; ``source`` says from where."""

    params: Params
    value: float
    source: str
    seconds: float | None = None


@dataclass(slots=True)
class Checked:
    """What a table holds for a search.

    Attributes:
        points: Rows that fit.
        problems: What is wrong with the others, a line for each cell.
        bad: How many rows have problems.
        valueless: How many rows have no finite value; they are no points.
    """

    points: list[Point] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bad: int = 0
    valueless: int = 0


def check(table: Table, variables: Sequence[Variable]) -> Checked:
    """Return the rows of ``table`` as points within the bounds of ``variables``."""
    checked = Checked()
    for row in table.rows:
        problems: list[str] = []
        value = _value(row, problems)
        if value is not None and not math.isfinite(value):
            checked.valueless += 1
            continue
        params = {v.name: _vector(v, row, problems) for v in variables}
        if problems or value is None:
            checked.bad += 1
            checked.problems += problems
            continue
        point = Point(
            params=params,
            value=value,
            source=f"{table.source}, {row.place}",
            seconds=_seconds(row.seconds),
        )
        checked.points.append(point)
    return checked


def _value(row: Row, problems: list[str]) -> float | None:
    """Return the objective, NaN if the row has none; None, and a problem, if it is no number."""
    if row.value is None or row.value == "":
        return math.nan
    number = _number(row.value)
    if number is None:
        problems.append(f"{row.place}, value: {row.value!r} is no number")
    return number


def _vector(variable: Variable, row: Row, problems: list[str]) -> tuple[Value, ...]:
    """Return the values of ``variable``, as far as they fit; a problem for each that does not."""
    vector: list[Value] = []
    for key in variable.elements():
        cell = row.cells.get(key)
        value = _option(variable, cell) if variable.kind is Kind.ENUM else _number(cell)
        if value is None or not fits(variable, value):
            problems.append(f"{row.place}, {key}: {_misfit(variable, cell, value)}")
        else:
            vector.append(int(value) if variable.kind is Kind.INT else value)
    return tuple(vector)


def _misfit(variable: Variable, cell: object, value: Value | None) -> str:
    """Return why ``cell``, read as ``value``, is no value of ``variable``."""
    if cell is None or cell == "":
        return "missing"
    if variable.kind is Kind.ENUM:
        return f"{cell!r} is none of {', '.join(variable.options)}"
    if value is None:
        return f"{cell!r} is no number"
    if not isinstance(value, str) and variable.low <= value <= variable.high:
        return f"{cell} is no whole number"
    return f"{cell} is outside of {variable.low:g} to {variable.high:g}"


def _option(variable: Variable, cell: object) -> str | None:
    """Return ``cell`` as text, without blanks around it unless an option has them."""
    if cell is None:
        return None
    text = str(cell)
    return text if text in variable.options else text.strip()


def _number(cell: object) -> float | None:
    """Return a number or its text as float; None for anything else."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _seconds(cell: object) -> float | None:
    seconds = _number(cell)
    return seconds if seconds is not None and 0.0 <= seconds < math.inf else None
