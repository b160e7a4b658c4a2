"""Read a table: its columns in their types, and its target."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pycuda_nn.data.table import arrow, csv_plain
from pycuda_nn.data.table.columns import EUROPEAN, Cells, Column, as_texts, is_code, typed, without
from pycuda_nn.data.table.content import COMPRESSIONS, read_text
from pycuda_nn.data.table.dialect import Dialect, find_dialect, rows
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.errors import DataError, EmptyData, did_you_mean

Array = npt.NDArray[Any]

_PARQUET = (".parquet", ".pq")
_TEXT = (".csv", ".tsv")
SUFFIXES = (*_TEXT, *_PARQUET)
ARROW_CHARS = 1 << 20  # below this size the import of pyarrow takes longer than it saves


def is_table(path: Path) -> bool:
    """Return whether the name of the file is that of a table."""
    parts = path.suffixes
    if parts and parts[-1].lower() in COMPRESSIONS:
        return len(parts) > 1 and parts[-2].lower() in _TEXT
    return path.suffix.lower() in SUFFIXES


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """The columns of a table.

    Attributes:
        path: The file.
        columns: Feature columns, by name, in the order of the file.
        target: Name of the target column; None if read without.
        labels: Cells of the target: text, or numbers in their type. None without target.
        rows: Number of rows.
        has_names: Whether the file has column names.
        place: Returns where a row is, e.g. ``line 7``.
        target_style: Style of the target to use if its cells fit more than one; see
            :func:`pycuda_nn.data.table.columns.typed`.
    """

    path: Path
    columns: Mapping[str, Column]
    target: str | None
    labels: Cells | Array | None
    rows: int
    has_names: bool
    place: Callable[[int], str]
    target_style: str = ""


def read_table(
    path: Path,
    options: TableOptions,
    *,
    target: str | None = None,
    labelled: bool = True,
    wanted: Sequence[str] | None = None,
    kinds: Mapping[str, tuple[bool, str]] | None = None,
    target_style: str = "",
) -> Table:
    """Read a CSV or Parquet file.

    Args:
        path: The file.
        options: How it is read.
        target: Name or number of the target column; default: the last.
        labelled: Whether the file has a target column.
        wanted: Feature columns to select by name, in this order; numbered columns are selected by
            position. Default: all but the target, ``options.drop``, and row names.
        kinds: For each wanted column whether it was text in training, and the style of its cells.
        target_style: Style of the target in training.

    Raises:
        DataError: The file is invalid; names the line (from 1) if it can.
    """
    if path.suffix.lower() in _PARQUET:
        found = _read_parquet(path, options, target, labelled, wanted, kinds or {})
        return replace(found, target_style=target_style)
    text = read_text(path)
    dialect, text = find_dialect(text, path, options.header, wanted)
    goal = _target_index(dialect.names, target, path, _last(text, dialect)) if labelled else None
    nameless = {""} if dialect.has_header else set()  # row names of pandas and R
    by_name = wanted if dialect.has_header else None
    chosen = _feature_columns(dialect.names, goal, by_name, options.drop, path, nameless)
    whole = kinds if kinds and len(kinds) == len(chosen) else wanted  # also its empty columns
    known = dict(zip(chosen, whole or (), strict=False))
    kind = {i: (kinds or {}).get(known.get(i, dialect.names[i]), (False, "")) for i in chosen}
    goals = [] if goal is None else [goal]
    as_text = {*goals, *(i for i in chosen if kind[i][0] or kind[i][1] == "comma")}
    if kinds is None:
        as_text |= _columns_of_codes(text, dialect, chosen, path)
    raw = _split(text, dialect, [*chosen, *goals], as_text, path)
    default = "" if dialect.separator == "," else EUROPEAN
    columns = {}
    for i in chosen:
        prefer = "text" if kind[i][0] else kind[i][1] or default
        columns[dialect.names[i]] = _typed(
            dialect.names[i], raw[i], options, prefer, finds_codes=kinds is None
        )
    first = raw[goal if goal is not None else chosen[0]]
    return Table(
        path=path,
        columns=columns,
        target=None if goal is None else dialect.names[goal],
        labels=None if goal is None else raw[goal],
        rows=len(first.codes if isinstance(first, Cells) else first),
        has_names=dialect.has_header,
        place=lambda row: f"line {_line(text, dialect, row, path)}",
        target_style=target_style or default,
    )


def _split(
    text: str, dialect: Dialect, wanted: Sequence[int], as_text: Collection[int], path: Path
) -> dict[int, Array | Cells]:
    if len(text) >= ARROW_CHARS and arrow.installed():
        columns = arrow.read_columns(text, dialect, wanted, as_text)
        if columns is not None:
            return columns
    return csv_plain.read_columns(text, dialect, wanted, as_text, path)


def _columns_of_codes(text: str, dialect: Dialect, chosen: Sequence[int], path: Path) -> set[int]:
    """Return the columns that have a cell such as 01234, which must not be read as a number."""
    between = rf"""[^{re.escape(dialect.separator)}"\s]"""
    # The 0 comes first in the pattern: a search for a fixed character is four times as fast.
    if re.search(f"0(?<!{between}0)[0-9]+(?!{between})", text) is None:
        return set()
    found: set[int] = set()
    for _, cells in rows(text, dialect.separator, path, dialect.skipped):
        found |= {i for i in chosen if i < len(cells) and is_code(cells[i])}
    return found


def _typed(
    name: str, raw: Array | Cells, options: TableOptions, prefer: str, *, finds_codes: bool
) -> Column:
    if isinstance(raw, Cells):
        return typed(name, raw, options.na, prefer, finds_codes=finds_codes)
    column = Column(name=name, kind="number", values=raw)
    return without(column, options.na)


def _line(text: str, dialect: Dialect, row: int, path: Path) -> int:
    found = rows(text, dialect.separator, path, dialect.skipped)
    return next(itertools.islice(found, row + dialect.has_header, None))[0]


def _last(text: str, dialect: Dialect) -> int:
    """Return the last column that has a name or a cell: rows can end with a separator."""
    last = len(dialect.names) - 1
    if last and dialect.names[last] == f"column {last + 1}":
        return last - 1
    return last


def _read_parquet(
    path: Path,
    options: TableOptions,
    target: str | None,
    labelled: bool,
    wanted: Sequence[str] | None,
    kinds: Mapping[str, tuple[bool, str]],
) -> Table:
    table, names, index = arrow.read_parquet(path)
    hidden = index - {target, *(wanted or ())}
    shown = [i for i, name in enumerate(names) if name not in hidden]
    goal = None
    if labelled:
        if not shown:
            raise EmptyData(f"{path}: no columns", "Add feature columns and a target column.")
        names_shown = [names[i] for i in shown]
        goal = shown[_target_index(names_shown, target, path, len(shown) - 1)]
    chosen = _feature_columns(names, goal, wanted, options.drop, path, hidden)
    columns = {}
    for i in chosen:
        cells = arrow.typed_column(table, i, path)
        name = names[i]
        is_text, style = kinds.get(name, (False, ""))
        if isinstance(cells, Cells):
            prefer = "text" if is_text else style
            cells = typed(name, cells, options.na, prefer, finds_codes=name not in kinds)
        columns[name] = as_texts(cells) if is_text else without(cells, options.na)
    return Table(
        path=path,
        columns=columns,
        target=None if goal is None else names[goal],
        labels=None if goal is None else _labels(table, goal, path),
        rows=table.num_rows,
        has_names=True,
        place=lambda row: f"row {row} (counted from 0)",
    )


def _labels(table: Any, goal: int, path: Path) -> Cells | Array:
    values, missing = arrow.plain_values(table, goal)
    if values is not None:
        return values
    if missing:
        raise DataError(
            f"{path}: target '{table.column_names[goal]}' is missing in {missing} rows",
            "Remove or fill these rows before training.",
        )
    cells = arrow.typed_column(table, goal, path)
    if isinstance(cells, Cells):
        return cells
    return cells.values


def _target_index(names: Sequence[str], target: str | None, path: Path, last: int) -> int:
    if target is None:
        return last
    if target in names:
        return list(names).index(target)
    if target.lstrip("-").isdigit() and -len(names) <= int(target) < len(names):
        return int(target) % len(names)
    raise DataError(f"{path}: no column '{target}'", did_you_mean(target, names))


def _feature_columns(
    names: Sequence[str],
    goal: int | None,
    wanted: Sequence[str] | None,
    drop: Sequence[str],
    path: Path,
    skipped: set[str],
) -> list[int]:
    if wanted is None:
        for name in drop:
            if name not in names:
                raise DataError(f"{path}: no column '{name}' to drop", did_you_mean(name, names))
        columns = [
            i
            for i, name in enumerate(names)
            if i != goal and name not in skipped and name not in drop
        ]
        if not columns:
            raise EmptyData(
                f"{path}: no feature columns"
                + (f"; the only column is '{names[0][:40]}'" if len(names) == 1 else ""),
                "Add feature columns and a target column, and delete lines above the table.",
            )
        return columns
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of {len(wanted)} columns are missing, first '{missing[0]}'",
            "Use the columns that the model was trained on.",
        )
    return [list(names).index(name) for name in wanted]
