"""Split the rows of a CSV file into columns with the standard library."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.table.columns import Cells, to_number
from pycuda_nn.data.table.dialect import Dialect, rows
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]
_BLOCK_ROWS = 10_000


def read_columns(
    text: str, dialect: Dialect, wanted: Sequence[int], as_text: Collection[int], path: Path
) -> dict[int, Array | Cells]:
    """Return the ``wanted`` columns: float64 if each cell is a plain number, else text cells.

    Raises:
        DataError: A row has another number of cells; names its line.
    """
    plain = _plain_columns(text, dialect, [i for i in wanted if i not in as_text], path)
    if plain is not None:
        return plain | _text_columns(text, dialect, sorted(as_text), path)
    numeric: dict[int, list[Array]] = {i: [] for i in wanted if i not in as_text}
    texts = set(wanted) - set(numeric)
    for block in _blocks(text, dialect, path):
        for i in list(numeric):
            numbers = _numbers([row[i] for row in block])
            if numbers is None:
                del numeric[i]
                texts.add(i)
            else:
                numeric[i].append(numbers)
    columns: dict[int, Array | Cells] = {i: np.concatenate(parts) for i, parts in numeric.items()}
    return columns | _text_columns(text, dialect, sorted(texts), path)


def _plain_columns(
    text: str, dialect: Dialect, wanted: Sequence[int], path: Path
) -> dict[int, Array | Cells] | None:
    """Return the columns if all cells are plain numbers, without quotes; else None.

    numpy reads such text several times as fast as cell by cell.
    """
    body = rows(text, dialect.separator, path, dialect.skipped)
    first = next(itertools.islice(body, int(dialect.has_header), None))[1]
    if '"' in text or not wanted or len(first) != len(dialect.names):
        return None
    if any(to_number(first[i]) is None for i in wanted):
        return None
    lines = [line for line in text.split("\n") if line][dialect.has_header :]
    separators = len(dialect.names) - 1
    if any(line.count(dialect.separator) != separators for line in lines):
        return None
    try:
        numbers = np.loadtxt(
            lines, delimiter=dialect.separator, usecols=wanted, comments=None, ndmin=2
        )
    except ValueError:
        return None
    if len(numbers) != len(lines) or np.isnan(numbers).any():
        return None
    return {i: np.ascontiguousarray(numbers[:, place]) for place, i in enumerate(wanted)}


def _blocks(text: str, dialect: Dialect, path: Path) -> Iterator[list[list[str]]]:
    """Yield the rows below the header in blocks."""
    width = len(dialect.names)
    body = _checked(text, dialect, width, path)
    for _ in range(dialect.has_header):
        next(body)
    while block := list(itertools.islice(body, _BLOCK_ROWS)):
        yield block


def _checked(text: str, dialect: Dialect, width: int, path: Path) -> Iterator[list[str]]:
    for line, row in rows(text, dialect.separator, path, dialect.skipped):
        if len(row) != width:
            raise DataError(
                f"{path}, line {line}: {len(row)} cells, but the first line has {width}",
                "Write the same number of cells in every row.",
            )
        yield row


def _numbers(cells: list[str]) -> Array | None:
    """Return float64 values, or None unless every cell is a plain number."""
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        return None
    return None if np.isnan(numbers).any() or "_" in "".join(cells) else numbers


def _text_columns(
    text: str, dialect: Dialect, wanted: Sequence[int], path: Path
) -> dict[int, Cells]:
    if not wanted:
        return {}
    index: dict[int, dict[str, int]] = {i: {} for i in wanted}
    codes: dict[int, list[Array]] = {i: [] for i in wanted}
    for block in _blocks(text, dialect, path):
        for i, known in index.items():
            places = [known.setdefault(row[i], len(known)) for row in block]
            codes[i].append(np.array(places, dtype=np.int64))
    return {i: Cells(codes=np.concatenate(codes[i]), texts=tuple(index[i])) for i in wanted}
