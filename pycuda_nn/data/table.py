"""Read CSV and Parquet tables: column names, features and a target column."""

from __future__ import annotations

import csv
import importlib
import io
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import DataError, EmptyData, MissingExtra, UnreadableFile, did_you_mean

Array = npt.NDArray[Any]
_MISSING = ("", "?", "-", "na", "n/a", "null", "none")


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """A table split into features and target; ``y`` is empty if it was read without a target."""

    x: Array
    y: Array
    columns: tuple[str, ...]


def read_csv(
    path: Path,
    *,
    target: str | None,
    labelled: bool,
    wanted: Sequence[str] | None = None,
    text_labels: bool = False,
) -> Table:
    """Read a comma-separated UTF-8 file, with or without a header line.

    Args:
        path: The file.
        target: Name or number of the target column; default: the last.
        labelled: Whether the file has a target column.
        wanted: Feature columns to select by name, in this order. Default: all but the target, and
            without a first column that has no name in the header.
        text_labels: Keep the labels as text, even if all of them are numbers.

    Raises:
        DataError: The file is invalid; names the line (from 1) of the first row that has another
            number of cells or is not numeric.
    """
    text = _read_text(path)
    names, has_header = _header(text, path)
    goal = _target_index(names, target, path) if labelled else None
    nameless = {0} if has_header and not names[0] else set()  # row names of pandas and R
    usecols = _feature_columns(names, goal, wanted if has_header else None, path, nameless)
    body = io.StringIO(text)
    if has_header:
        _skip_first_row(body)
    start = body.tell()
    try:
        _check_widths(text, len(names), path)
        x = _load(body, usecols, np.float32)
        body.seek(start)
        y = np.empty(0) if goal is None else _labels(_load(body, [goal], str)[:, 0], text_labels)
    except ValueError as error:
        raise _locate(text, names, has_header, usecols, goal, path, error) from error
    return Table(x=x, y=y, columns=tuple(names[i] for i in usecols))


def read_parquet(
    path: Path,
    *,
    target: str | None,
    labelled: bool,
    wanted: Sequence[str] | None = None,
    text_labels: bool = False,
) -> Table:
    """Read a Parquet file without its pandas index; arguments as in :func:`read_csv`."""
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
        lib: Any = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("pyarrow", "data", f"Reading {path.name}") from error
    try:
        table = parquet.read_table(path)
    except (lib.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{path}: cannot read as .parquet: {reason}") from error
    hidden = _pandas_index(table) - {target, *(wanted or ())}
    table = table.drop_columns([name for name in table.column_names if name in hidden])
    names: list[str] = list(table.column_names)
    if not names:
        raise EmptyData(f"{path}: no columns", "Add feature columns and a target column.")
    goal = _target_index(names, target, path) if labelled else None
    chosen = _feature_columns(names, goal, wanted, path)
    if table.num_rows == 0 or not chosen:
        raise EmptyData(
            f"{path}: {table.num_rows} rows, {len(chosen)} features",
            "Use a table with at least one row and one feature column.",
        )
    x = np.empty((table.num_rows, len(chosen)), dtype=np.float32)
    for place, index in enumerate(chosen):
        x[:, place] = _numeric_column(_whole(table, index, path), names[index], path)
    y = np.empty(0) if goal is None else _labels_of(_whole(table, goal, path), names[goal], path)
    if text_labels and y.dtype.kind in "iu":
        y = y.astype(str)
    return Table(x=x, y=y, columns=tuple(names[i] for i in chosen))


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(
            f"{path}: not UTF-8 text (byte {error.start})", "Save the file as CSV in UTF-8."
        ) from error
    except OSError as error:
        raise UnreadableFile(f"{path}: cannot read: {error.strerror}") from error


def _rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the last line, cells) of every row that is not blank."""
    reader, first = csv.reader(io.StringIO(text)), 1
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
            first = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {first}: {error}", "Check for a quote that is not closed."
        ) from error


def _skip_first_row(body: io.StringIO) -> None:
    for line in iter(body.readline, ""):
        if line.strip():
            return


def _header(text: str, path: Path) -> tuple[list[str], bool]:
    """Return the column names, and whether the first row is a header.

    The first row is a header in three cases:

    - None of its cells is a number.
    - One of its cells is a name and the cell below it is a number. A mark of a missing value is
      not a name.
    - Its cells are empty, 0, 1, ...: pandas writes this header for numbered columns and an index.
    """
    rows = _rows(text, path)
    first = next(rows, (0, []))[1]
    second = next(rows, (0, []))[1]
    if not first:
        raise EmptyData(f"{path}: empty file", "Add at least one row of data.")
    words = [not _is_float(cell) for cell in first]
    named = [
        word and cell.strip().lower() not in _MISSING
        for word, cell in zip(words, first, strict=True)
    ]
    above = any(n and _is_float(c) for n, c in zip(named, second, strict=False))
    numbered = not first[0] and first[1:] == [str(i) for i in range(len(first) - 1)]
    if not (all(words) or above or numbered):
        return [f"c{i}" for i in range(len(first))], False
    if not second:
        raise EmptyData(f"{path}: a header but no rows", "Add at least one row of data.")
    names = [cell.strip() for cell in first]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: duplicate column '{twice[0]}'", "Rename one of the columns.")
    return names, True


def _is_float(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell  # Python ignores underscores: 1_1 would be 11


def _target_index(names: Sequence[str], target: str | None, path: Path) -> int:
    if target is None:
        return len(names) - 1
    if target in names:
        return list(names).index(target)
    if target.lstrip("-").isdigit() and -len(names) <= int(target) < len(names):
        return int(target) % len(names)
    raise DataError(f"{path}: no column '{target}'", did_you_mean(target, names))


def _feature_columns(
    names: Sequence[str],
    goal: int | None,
    wanted: Sequence[str] | None,
    path: Path,
    skipped: Collection[int] = (),
) -> list[int]:
    if wanted is None:
        columns = [i for i in range(len(names)) if i != goal and i not in skipped]
        if not columns:
            raise EmptyData(
                f"{path}: no feature columns", "Add feature columns and a target column."
            )
        return columns
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(
            f"{path}: {len(missing)} of {len(wanted)} columns are missing, first '{missing[0]}'",
            "Use the columns that the model was trained on.",
        )
    return [list(names).index(name) for name in wanted]


def _check_widths(text: str, width: int, path: Path) -> None:
    """Raise ValueError if a row has another number of cells: numpy accepts rows that are longer."""
    if '"' in text:
        ragged = any(len(row) != width for _, row in _rows(text, path))
    else:
        commas = {line.count(",") for line in text.splitlines() if line}
        ragged = commas != {width - 1}
    if ragged:
        raise ValueError("ragged")


def _load(body: io.StringIO, usecols: Sequence[int], dtype: type) -> Array:
    kwargs: dict[str, Any] = {"delimiter": ",", "quotechar": '"', "comments": None, "ndmin": 2}
    with warnings.catch_warnings():
        # Blank lines between rows are allowed; numpy warns of them when it reads text.
        warnings.simplefilter("ignore", UserWarning)
        return np.loadtxt(body, dtype=dtype, usecols=usecols, **kwargs)


def _labels(cells: Array, as_text: bool) -> Array:
    """Return labels as integers if possible, else as real numbers, else as text.

    Raises:
        ValueError: A label is empty.
    """
    stripped = np.char.strip(cells)
    if not np.all(np.char.str_len(stripped)):
        raise ValueError("empty label")
    if as_text or np.any(np.char.find(stripped, "_") >= 0):  # Python reads 1_1 as 11
        return stripped
    for kind in (np.int64, np.float64):
        try:
            return stripped.astype(kind)
        except (ValueError, OverflowError):
            continue
    return stripped


def _locate(
    text: str,
    names: Sequence[str],
    has_header: bool,
    usecols: Sequence[int],
    goal: int | None,
    path: Path,
    error: ValueError,
) -> DataError:
    """Return an error with the line and the cell at which the fast reader failed."""
    for number, (line, row) in enumerate(_rows(text, path)):
        if len(row) != len(names):
            return DataError(
                f"{path}, line {line}: {len(row)} cells, but the first line has {len(names)}",
                "Write the same number of cells in every row.",
            )
        if number < has_header:
            continue
        bad = [i for i in usecols if not _is_float(row[i])]
        if bad:
            return DataError(
                f"{path}, line {line}: '{row[bad[0]]}' in column {bad[0] + 1} is not a number",
                "Features must be numbers; name a label column with --target.",
            )
        if goal is not None and not row[goal].strip():
            return DataError(
                f"{path}, line {line}: the label in column {goal + 1} is empty",
                "Remove or fill this row before training.",
            )
    return UnreadableFile(f"{path}: cannot read as .csv: {error}")


def _pandas_index(table: Any) -> set[str]:
    """Return the names of the columns that pandas reads as the index."""
    metadata = table.schema.pandas_metadata or {}
    return {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}


def _whole(table: Any, index: int, path: Path) -> Any:
    column = table.column(index).combine_chunks()
    if column.null_count:
        name = table.column_names[index]
        raise DataError(
            f"{path}: column '{name}' has {column.null_count} missing values",
            "Remove or fill these rows before training.",
        )
    return column


def _numeric_column(column: Any, name: str, path: Path) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind not in "fiub":
        raise DataError(
            f"{path}: column '{name}' of type {column.type} is not numeric",
            "Features must be numbers; name a label column with --target.",
        )
    return values


def _labels_of(column: Any, name: str, path: Path) -> Array:
    values: Array = column.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "fiub":
        return values
    if values.dtype.kind == "O" and all(isinstance(value, str) for value in values):
        return values.astype(str)
    raise DataError(
        f"{path}: target '{name}' has the unsupported type {column.type}", "Use numbers or text."
    )
