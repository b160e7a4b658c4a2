"""Rows of results from a source, and the check whether they fit config.pb."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from spearmint.conditions import holds, parents_first, requirements
from spearmint.config.variables import fits
from spearmint.fidelity import Fidelity
from spearmint.model import Kind, Params, Value, Variable
from spearmint.outputs import Constraint, Objective

_REGION = "region"  # name of the column in the output of `spearmint export`


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One unchecked result of a source.

    Attributes:
        place: Position in the source for messages, such as ``line 7``.
        cells: Numbers or text by element name, such as ``lr`` or ``X[0]``.
        value: The objective, a number or text; None for a trial without a value.
        seconds: The duration, a number or text; None if unknown.
        curve: Values by step, numbers or text, of a trial that trained in steps.
        stopped: Whether it was paused or pruned, so that only its curve counts.
    """

    place: str
    cells: Mapping[str, object]
    value: object
    seconds: object = None
    curve: Mapping[int, object] = field(default_factory=dict)
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All rows of a source; ``source`` is its name for users."""

    source: str
    rows: Sequence[Row]
    unused: Sequence[str] = ()


def only_region(table: Table, region: str) -> Table:
    """Return ``table`` without the rows whose cell ``region`` names another region."""
    rows = [row for row in table.rows if row.cells.get(_REGION, region) == region]
    return replace(table, rows=rows, unused=[name for name in table.unused if name != _REGION])


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A trial from another source, which ``source`` names.

    Attributes:
        value: Its value, or those of several objectives; None if it is paused.
        rungs: Its values at the rungs of config.pb below the last one; NaN where one is unknown.
    """

    params: Params
    value: float | tuple[float, ...] | None
    source: str
    rungs: tuple[float, ...] = ()
    seconds: float | None = None
    constraints: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class Checked:
    """The result of :func:`check`.

    Attributes:
        points: The rows that fit the variables.
        problems: The errors in the other rows, a line for each cell.
        bad: Number of rows with errors.
        valueless: Number of rows without a finite value, which cannot be points.
        stopped: Number of paused and pruned trials without a value at a rung of config.pb.
    """

    points: list[Point] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    bad: int = 0
    valueless: int = 0
    stopped: int = 0


def check(
    table: Table,
    variables: Sequence[Variable],
    constraints: Sequence[Constraint] = (),
    objectives: Sequence[Objective] = (),
    fidelity: Fidelity | None = None,
) -> Checked:
    """Convert the rows of ``table`` to points; check them against config.pb.

    ``objectives`` are several, or none if there is one. With ``fidelity``, values at its rungs are
    those of the curve of a trial, and a trial that was stopped is paused at the last of them.
    """
    checked = Checked()
    for row in table.rows:
        problems: list[str] = []
        rungs = _rungs(fidelity, row, problems)
        if row.stopped and not rungs and not problems:
            checked.stopped += 1
            continue
        goals = [Row(place=row.place, cells={}, value=row.cells.get(o.name)) for o in objectives]
        values = [] if row.stopped else [_value(each, problems) for each in goals or [row]]
        if any(value is not None and not math.isfinite(value) for value in values):
            checked.valueless += 1
            continue
        params = _params(variables, row, problems)
        limited = {each.name: _limited(each, row, problems) for each in constraints}
        known = [value for value in values if value is not None]
        if problems or len(known) < len(values):
            checked.bad += 1
            checked.problems += problems
            continue
        point = Point(
            params=params,
            value=None if row.stopped else tuple(known) if objectives else known[0],
            source=f"{table.source}, {row.place}",
            rungs=rungs,
            seconds=_seconds(row.seconds),
            constraints=limited,
        )
        checked.points.append(point)
    return checked


def _rungs(fidelity: Fidelity | None, row: Row, problems: list[str]) -> tuple[float, ...]:
    """Return the values at rungs; NaN for all of them if a complete trial has no curve."""
    if fidelity is None:
        return ()
    curve: dict[int, float] = {}
    for step, cell in row.curve.items():
        number = _number(cell)
        if number is None:
            problems.append(f"{row.place}, value at step {step}: {cell!r} is not a number")
        elif not math.isnan(number):
            curve[step] = number
    found = fidelity.at_rungs(curve)
    unknown = len(fidelity.rungs) - 1 - len(found)
    return found if row.stopped else (*found, *[math.nan] * unknown)


def _params(variables: Sequence[Variable], row: Row, problems: list[str]) -> Params:
    """Return the values of the active variables, in the order of config.pb."""
    params: dict[str, tuple[Value, ...]] = {}
    first: dict[str, Value] = {}
    needed = requirements(tuple(variables))
    for variable in parents_first(variables):
        if holds(needed.get(variable.name, ()), first):
            vector = params[variable.name] = _vector(variable, row, problems)
            first |= {variable.name: vector[0]} if vector else {}
    return {v.name: params[v.name] for v in variables if v.name in params}


def _value(row: Row, problems: list[str]) -> float | None:
    """Return the objective, NaN if missing; None, with a new problem, if it is not a number."""
    if row.value is None or row.value == "":
        return math.nan
    number = _number(row.value)
    if number is None:
        problems.append(f"{row.place}, value: {row.value!r} is not a number")
    return number


def _limited(constraint: Constraint, row: Row, problems: list[str]) -> float:
    """Return the value of ``constraint``; add a problem if it is not a number."""
    cell = row.cells.get(constraint.name)
    number = _number(cell)
    if number is None or math.isnan(number):
        what = "missing" if cell is None or cell == "" else f"{cell!r} is not a number"
        problems.append(f"{row.place}, {constraint.name}: {what}")
        return math.nan
    return number


def _vector(variable: Variable, row: Row, problems: list[str]) -> tuple[Value, ...]:
    """Return the values of ``variable`` that fit; add a problem for each other value."""
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
    """Return why ``cell``, converted to ``value``, is not a valid value of ``variable``."""
    if cell is None or cell == "":
        return "missing"
    if variable.kind is Kind.ENUM:
        return f"{cell!r} is not one of {', '.join(variable.options)}"
    if value is None:
        return f"{cell!r} is not a number"
    if not isinstance(value, str) and variable.low <= value <= variable.high:
        return f"{cell} is not an integer"
    return f"{cell} is outside the range {variable.low:g} to {variable.high:g}"


def _option(variable: Variable, cell: object) -> str | None:
    """Return ``cell`` as text; strip it unless it is an option with spaces around it."""
    if cell is None:
        return None
    text = str(cell)
    return text if text in variable.options else text.strip()


def _number(cell: object) -> float | None:
    """Convert a number or its text to float; return None for anything else."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _seconds(cell: object) -> float | None:
    seconds = _number(cell)
    return seconds if seconds is not None and 0.0 <= seconds < math.inf else None
