"""All calls of pyarrow: split CSV files into columns, and read Parquet files."""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.table.columns import Cells, Column
from pycuda_nn.data.table.dialect import Dialect
from pycuda_nn.errors import DataError, EmptyData, MissingExtra, UnreadableFile

Array = npt.NDArray[Any]


def installed() -> bool:
    """Return whether pyarrow is installed."""
    try:
        return importlib.util.find_spec("pyarrow") is not None
    except ValueError:  # imported and disabled
        return False


def read_columns(
    text: str, dialect: Dialect, wanted: Sequence[int], as_text: Collection[int]
) -> dict[int, Array | Cells] | None:
    """Return what :func:`csv_plain.read_columns` returns, or None if pyarrow rejects the rows."""
    csv: Any = importlib.import_module("pyarrow.csv")
    lib: Any = importlib.import_module("pyarrow")
    names = [f"f{i}" for i in range(len(dialect.names))]
    try:
        table = csv.read_csv(
            io.BytesIO(text.encode()),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(
                delimiter=dialect.separator, newlines_in_values='"' in text
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, lib.string()),
                include_columns=[names[i] for i in wanted],
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            ),
        )
    except lib.ArrowException:
        return None
    table = table.slice(int(dialect.has_header))
    return {
        i: _cells(table.column(place)) if i in as_text else _numbers_or_cells(table.column(place))
        for place, i in enumerate(wanted)
    }


def _numbers_or_cells(column: Any) -> Array | Cells:
    lib: Any = importlib.import_module("pyarrow")
    try:
        numbers: Array = column.cast(lib.float64()).to_numpy()
    except lib.ArrowException:
        return _cells(column)
    return _cells(column) if np.isnan(numbers).any() else numbers


def _cells(column: Any) -> Cells:
    coded = column.combine_chunks().dictionary_encode()
    if hasattr(coded, "chunks"):
        coded = coded.combine_chunks()
    codes = coded.indices.to_numpy().astype(np.int64)
    return Cells(codes=codes, texts=tuple(coded.dictionary.to_pylist()))


def read_parquet(path: Path) -> tuple[Any, tuple[str, ...], set[str]]:
    """Return the table of a Parquet file, its column names, and those of its pandas index.

    Raises:
        MissingExtra: pyarrow is not installed.
        UnreadableFile: The file cannot be read.
    """
    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
        lib: Any = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingExtra("pyarrow", "data", f"Reading {path.name}") from error
    try:
        table = parquet.ParquetFile(path).read()
    except (lib.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UnreadableFile(f"{path}: cannot read as .parquet: {reason}") from error
    metadata = table.schema.pandas_metadata or {}
    index = {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}
    names = tuple(table.column_names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: duplicate column '{twice[0]}'", "Rename one of the columns.")
    if not names:
        raise EmptyData(f"{path}: no columns", "Add feature columns and a target column.")
    if not table.num_rows:
        raise EmptyData(f"{path}: 0 rows", "Use a table with at least one row.")
    return table, names, index


def typed_column(table: Any, index: int, path: Path) -> Column | Cells:
    """Return a column of a Parquet table, or the cells of a text column.

    Raises:
        DataError: Its type is not a number, truth value, date or text.
    """
    lib: Any = importlib.import_module("pyarrow")
    types = lib.types
    name, column = table.column_names[index], table.column(index)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind):
        return _cells(column.fill_null(""))
    if types.is_boolean(kind):
        return Column(name=name, kind="bool", values=_floats(column.cast(lib.uint8())))
    if types.is_date(kind) or types.is_timestamp(kind):
        stamps = column.cast(lib.timestamp("us", getattr(kind, "tz", None)), safe=False)
        micros = _floats(stamps.cast(lib.int64()))
        return Column(name=name, kind="date", values=micros / 86_400e6)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return Column(name=name, kind="number", values=_floats(column))
    if types.is_null(kind):
        return Column(name=name, kind="number", values=np.full(table.num_rows, np.nan))
    raise DataError(
        f"{path}: column '{name}' has the unsupported type {kind}",
        "Store numbers, truth values, dates or text, or leave it out with --drop.",
    )


def _floats(column: Any) -> Array:
    lib: Any = importlib.import_module("pyarrow")
    values: Array = column.cast(lib.float64(), safe=False).to_numpy()
    return values


def plain_values(table: Any, index: int) -> tuple[Array | None, int]:
    """Return (numbers in their type or None, number of missing cells) of a Parquet column."""
    column = table.column(index)
    if column.null_count:
        return None, column.null_count
    values: Array = column.to_numpy()
    return (values if values.dtype.kind in "fiub" else None), 0
