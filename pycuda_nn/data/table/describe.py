"""Describe the columns of a table: kinds, values, what a training does with them, and warnings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.table.columns import Cells, Column, month_and_day, typed
from pycuda_nn.data.table.feature import fit_feature, has_own_texts
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.data.table.read import Table, read_table
from pycuda_nn.data.table.target import read_target
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]

_TOP = 3
_USUAL_TARGETS = {"target", "label", "class", "y", "outcome", "response"}


@dataclass(frozen=True, kw_only=True)
class ColumnReport:
    """Report of a column.

    Attributes:
        name: The column.
        kind: ``number``, ``bool``, ``date``, ``text`` or ``empty``.
        missing, distinct: Number of missing cells, and of different values.
        values: Range and mean, or the most frequent values.
        training: What a training does with it.
    """

    name: str
    kind: str
    missing: int
    distinct: int
    values: str
    training: str


@dataclass(frozen=True, kw_only=True)
class TableReport:
    """Report of a table; ``task`` is ``classify``, ``regress`` or, if it has none, empty."""

    file: str
    rows: int
    target: str
    task: str
    columns: tuple[ColumnReport, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def describe(path: Path, options: TableOptions, target: str | None = None) -> TableReport:
    """Return the report of a CSV or Parquet file, which reads all rows.

    Raises:
        DataError: The file cannot be read as a table, or has no such target column.
    """
    table = read_table(path, options, target=target)
    goal = _goal(table, options)
    warnings = []
    try:
        task = read_target(table, "auto").task
    except DataError as error:
        task = ""
        warnings.append(str(error).removeprefix(f"{path}: ").replace("\n", ". "))
    columns = [_column(column, table, options) for column in table.columns.values()]
    columns.append(_report(goal, f"target: {task or 'cannot be trained on'}"))
    for column in table.columns.values():
        warnings += _warnings(column, goal, task)
    usual = [name for name in table.columns if name.lower() in _USUAL_TARGETS]
    if target is None and usual and goal.name.lower() not in _USUAL_TARGETS:
        warnings.append(f"the target could be '{usual[0]}': --target {quote(usual[0])}")
    return TableReport(
        file=str(path), rows=table.rows, target=goal.name, task=task, columns=tuple(columns),
        warnings=tuple(warnings),
    )  # fmt: skip


def _goal(table: Table, options: TableOptions) -> Column:
    name = table.target or ""
    if isinstance(table.labels, Cells):
        return typed(name, table.labels, options.na, table.target_style)
    values = np.asarray(table.labels)
    kind = "bool" if values.dtype.kind == "b" else "number"
    return Column(name=name, kind=kind, values=values.astype(np.float64))


def _column(column: Column, table: Table, options: TableOptions) -> ColumnReport:
    if options.text == "auto" and has_own_texts(column):
        return _report(column, f"refused: most rows have their own text; --drop {_word(column)}")
    if np.isinf(column.values).any():
        return _report(column, "refused: infinite values")
    try:
        feature = fit_feature(column, np.arange(table.rows), table, options)
    except DataError as error:
        reason = error.what.removeprefix(f"{table.path}, ").removeprefix(f"{table.path}: ")
        return _report(column, f"refused: {reason}")
    if feature.kind == "empty":
        return _report(column, "left out: no values")
    if options.missing == "refuse" and feature.marked:
        return _report(column, "refused: missing cells")
    own = len(feature.names()) - feature.marked
    words = {"one-hot": "one for each value", "hash": "hashed", "date": "days"}
    how = f" ({words[feature.kind]})" if feature.kind in words else ""
    plural = "1 feature" if own == 1 else f"{own} features"
    mark = ", 1 for missing cells" if feature.marked else ""
    return _report(column, f"{plural}{how}{mark}")


def _word(column: Column) -> str:
    return quote(column.name)


def _report(column: Column, training: str) -> ColumnReport:
    known = column.values[~column.missing()]
    distinct, counts = np.unique(known, return_counts=True)
    return ColumnReport(
        name=column.name,
        kind=column.kind if len(known) else "empty",
        missing=len(column.values) - len(known),
        distinct=len(distinct),
        values=_values(column, known, distinct, counts),
        training=training,
    )


def _values(column: Column, known: Array, distinct: Array, counts: Array) -> str:
    if column.kind == "number":
        known = known[np.isfinite(known)]
    if not len(known):
        return ""
    if column.kind == "number":
        return f"{known.min():.6g} to {known.max():.6g}, mean {known.mean():.6g}"
    if column.kind == "date":
        return f"{_date(known.min())} to {_date(known.max())}"
    names = column.texts if column.kind == "text" else ("false", "true")
    order = np.argsort(-counts, kind="stable")[:_TOP]
    top = [f"{_short(names[int(distinct[i])])} {counts[i]:,}" for i in order]
    return ", ".join(top) + (", ..." if len(distinct) > _TOP else "")


def _date(days: float) -> str:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=float(days))
    return moment.strftime("%Y-%m-%d" if days == int(days) else "%Y-%m-%d %H:%M")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 20 else f"{line[:17]}..."


def _warnings(column: Column, goal: Column, task: str) -> Iterator[str]:
    known = column.values[~column.missing()]
    drop = f"--drop {_word(column)}"
    if not len(known):
        return
    name, distinct = column.name, len(np.unique(known))
    if distinct == 1 and len(column.values) > 1:
        yield f"'{name}' has the same value in all rows: {drop}"
    elif _equals(column, goal, task):
        yield f"'{name}' determines the target '{goal.name}', as a copy of it does: {drop}"
    elif _numbers_rows(column, known, distinct):
        yield f"'{name}' numbers the rows: {drop}"
    if column.style in ("m/d/y", "d/m/y"):
        months, days = month_and_day(column)
        if days.max() <= 12 and (days != months).any():
            first = "month" if column.style == "m/d/y" else "day"
            yield f"'{name}' fits two orders of dates: read with the {first} first"
    if 2 * len(known) < len(column.values):
        yield f"'{name}' is missing in {1 - len(known) / len(column.values):.0%} of the rows"


def _numbers_rows(column: Column, known: Array, distinct: int) -> bool:
    """Return whether the values are n different whole numbers without a gap, or named an id."""
    if column.kind != "number" or distinct < max(len(column.values), 10):
        return False
    whole = bool(np.array_equal(known, np.rint(known)))
    is_id = column.name.lower() in ("id", "index") or column.name.lower().endswith(("_id", " id"))
    return whole and (is_id or known.max() - known.min() + 1 == distinct)


def _equals(column: Column, goal: Column, task: str) -> bool:
    """Return whether each value of the column has one target value, and the reverse.

    For numbers that are a regression: whether the target is a linear function of the column.
    """
    gaps = column.missing() | goal.missing()
    if gaps.any() or np.isinf(column.values).any() or np.isinf(goal.values).any():
        return False
    x, y = column.values, goal.values
    if task == "regress":
        if column.kind == "text" or goal.kind == "text" or np.ptp(x) == 0 or np.ptp(y) == 0:
            return False
        return len(x) > 2 and abs(float(np.corrcoef(x, y)[0, 1])) > 1 - 1e-12
    pairs = len(np.unique(np.column_stack([x, y]), axis=0))
    groups = len(np.unique(y))
    return pairs == groups == len(np.unique(x)) and 2 * groups <= len(y)
