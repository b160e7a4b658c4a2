"""Encode one column as numbers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.arrays import NARROW
from pycuda_nn.data.table.columns import Cells, Column, month_and_day, to_number, typed
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.data.table.read import Table
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]

MOST_VALUES = 64  # a column with more texts is hashed
BUCKETS = 64
_FEW_TEXTS = 20
_SLASHED = {"m/d/y": "month", "d/m/y": "day"}
_MOSTLY = 0.9  # a text column with this share of numbers has a typing error


@dataclass(frozen=True, kw_only=True)
class Feature:
    """How a column is encoded.

    Attributes:
        name: The column.
        kind: ``number``, ``bool``, ``date``, ``one-hot``, ``hash`` or ``empty`` (left out).
        style: How its numbers or dates are written.
        fill: Value of a missing number: the mean of the training rows.
        origin: Value that is 0, for a date and for numbers that differ little for their size.
        marked: Whether another column marks missing cells.
        values: Texts of a one-hot column.
    """

    name: str
    kind: str
    style: str = ""
    fill: float = 0.0
    origin: float = 0.0
    marked: bool = False
    values: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """Return the names of the encoded columns."""
        if self.kind == "one-hot":
            own = [f"{self.name}={value}" for value in self.values]
        elif self.kind == "hash":
            own = [f"{self.name}#{bucket}" for bucket in range(BUCKETS)]
        else:
            own = [] if self.kind == "empty" else [self.name]
        return [*own, f"{self.name} missing"] if self.marked else own

    @property
    def is_text(self) -> bool:
        """Whether the cells are read as text."""
        return self.kind in ("one-hot", "hash")


def has_own_texts(column: Column) -> bool:
    """Return whether most rows have their own text."""
    if column.kind != "text":
        return False
    if _MOSTLY <= _number_share(column) < 1:  # typing errors; if all are numbers, they are codes
        return False
    known = np.count_nonzero(column.values >= 0)
    return bool(len(column.texts) > _FEW_TEXTS and 2 * len(column.texts) > known)


def _number_share(column: Column) -> float:
    """Return the share of the known cells that are numbers."""
    is_number = np.array([to_number(text) is not None for text in column.texts])
    known = column.values[column.values >= 0]
    return float(is_number[known].mean()) if len(known) else 0.0


def fit_feature(
    column: Column, rows: npt.NDArray[np.intp], table: Table, options: TableOptions
) -> Feature:
    """Return how to encode a column by its cells in the training ``rows``."""
    values, name = column.values[rows], column.name
    gaps = column.missing()[rows]
    marked = bool(gaps.any())
    if gaps.all():
        return Feature(name=name, kind="empty")
    if column.kind != "text":
        known = values[~gaps]
        with np.errstate(over="ignore", invalid="ignore"):  # infinite values are refused later
            fill, width = float(known.mean()), float(np.ptp(known))
        narrow = 0 < width < NARROW * abs(fill)
        origin = float(known.min()) if column.kind == "date" or narrow else 0.0
        return Feature(
            name=name, kind=column.kind, style=column.style, fill=fill, origin=origin, marked=marked
        )
    _check_text(column, table, options)
    present = np.unique(values[~gaps])
    texts = tuple(column.texts[i] for i in present)
    one_hot = options.text == "one-hot" or (options.text == "auto" and len(texts) <= MOST_VALUES)
    if one_hot:
        return Feature(name=name, kind="one-hot", marked=marked, values=texts)
    return Feature(name=name, kind="hash", marked=marked)


def _check_text(column: Column, table: Table, options: TableOptions) -> None:
    if options.text == "refuse":
        raise DataError(
            f"{table.path}: column '{column.name}' is text",
            f"Leave it out with --drop {quote(column.name)}, or encode it with --text auto.",
        )
    few = len(column.texts) <= _FEW_TEXTS
    if options.text != "auto" or few or _number_share(column) < _MOSTLY:
        return
    code = next((i for i, text in enumerate(column.texts) if to_number(text) is None), None)
    if code is not None:  # codes with leading zeros are numbers, too
        raise _not_number(column, code, table)


def _not_number(column: Column, code: int, table: Table) -> DataError:
    text = column.texts[code]
    row = int(np.flatnonzero(column.values == code)[0])
    return DataError(
        f"{table.path}, {table.place(row)}: '{text}' in column '{column.name}' is not a number",
        f"Correct the cell, or count it as missing: --na {quote(text)}",
    )


def encode(feature: Feature, column: Column, table: Table, out: Array) -> list[str]:
    """Write the encoded column to ``out``, zeros (rows, width); return sentences for users."""
    gaps = column.missing()
    if feature.marked:
        out[:, -1] = gaps
    notes = []
    if gaps.any() and not feature.marked:
        how = "none of the known values" if feature.is_text else f"the mean {feature.fill:.6g}"
        notes.append(
            f"column '{column.name}': {_count(gaps, 'missing cell')}, none in training; "
            f"read as {how}"
        )
    if feature.is_text:
        return notes + _encode_text(feature, column, gaps, out)
    _check_kind(feature, column, table)
    filled = np.where(gaps, feature.fill, column.values)
    with np.errstate(over="ignore"):
        out[:, 0] = filled - feature.origin
    return notes


def _encode_text(feature: Feature, column: Column, gaps: Array, out: Array) -> list[str]:
    rows = np.flatnonzero(~gaps)
    codes = column.values[rows]
    if feature.kind == "hash":
        places = np.array([zlib.crc32(text.encode()) % BUCKETS for text in column.texts], dtype=int)
    else:
        index = {text: i for i, text in enumerate(feature.values)}
        places = np.array([index.get(text, -1) for text in column.texts], dtype=int)
    if not len(rows):
        return []
    place = places[codes]
    known = place >= 0
    out[rows[known], place[known]] = 1.0
    if known.all():
        return []
    first = column.texts[codes[np.flatnonzero(~known)[0]]]
    return [
        f"column '{column.name}': {_count(~known, 'row')} with a value that training did not have, "
        f"first '{first}'; read as none of the known values"
    ]


def _check_kind(feature: Feature, column: Column, table: Table) -> None:
    """Raise DataError if numbers, truth values or dates were trained on and others are given."""
    if column.kind == "text":
        for code, text in enumerate(column.texts if feature.kind != "date" else ()):
            cell = Cells(codes=np.zeros(1, dtype=int), texts=(text,))
            if typed("", cell, (), feature.style).kind != feature.kind:
                raise _not_number(column, code, table)
    if {feature.style, column.style} == set(_SLASHED):
        _, day = month_and_day(column)
        row = int(np.flatnonzero(~column.missing())[np.argmax(day > 12)])
        raise DataError(
            f"{table.path}, {table.place(row)}: a date in column '{column.name}' has the "
            f"{_SLASHED[column.style]} first, in training the {_SLASHED[feature.style]}",
            "Write the dates as YYYY-MM-DD in both files, and train again.",
        )
    numbers = ("number", "bool")
    same = feature.kind == column.kind or {feature.kind, column.kind} <= set(numbers)
    if not same and not column.missing().all():
        raise DataError(
            f"{table.path}: column '{column.name}' has kind {column.kind}, "
            f"in training {feature.kind}",
            "Use the columns that the model was trained on.",
        )


def _count(flags: Array, noun: str) -> str:
    number = int(np.count_nonzero(flags))
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
