"""Find the separator of a CSV file, and whether its first row is a header."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pycuda_nn.data.table.columns import is_missing, to_number
from pycuda_nn.errors import DataError, EmptyData

SEPARATORS = (";", "\t", "|", ",")
_SAMPLE_CHARS = 1 << 16
_SAMPLE_ROWS = 200
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+")
_VALUE = re.compile(r"true|false|\d{4}-\d\d?-\d\d?([T ].*)?|\d\d?[./]\d\d?[./]\d{4}", re.I)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV file is written.

    Attributes:
        separator: The character between two cells.
        names: Names of the columns; generated (c0, c1, ...) without a header.
        has_header: Whether the first row contains the names.
        skipped: Lines before the first row.
    """

    separator: str
    names: tuple[str, ...]
    has_header: bool
    skipped: int = 0


def rows(
    text: str, separator: str, path: Path, skipped: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the last line, cells) of every row that is not blank."""
    reader, first = csv.reader(io.StringIO(text), delimiter=separator), 1
    try:
        for row in reader:
            if row:
                yield reader.line_num + skipped, row
            first = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {first + skipped}: {error}", "Check for a quote that is not closed."
        ) from error


def find_dialect(
    text: str, path: Path, header: str, wanted: Sequence[str] | None = None
) -> tuple[Dialect, str]:
    """Return the dialect, and the text without a first line ``sep=;`` of Excel.

    A first row with all ``wanted`` names is a header, also if the names are numbers.
    """
    skipped, given = 0, re.match(r"(?i)sep=(.)\n", text)
    if given:
        text, skipped = text[given.end() :], 1
    separator = given[1] if given else _separator(text, path)
    if text.count('"') % 2:
        _check_quotes(text, separator, path, skipped)
    sample = itertools.islice(rows(text, separator, path, skipped), _SAMPLE_ROWS)
    first_rows = [row for _, row in sample]
    if not first_rows:
        raise EmptyData(f"{path}: empty file", "Add at least one row of data.")
    named = bool(wanted) and {*(wanted or ())} <= {cell.strip() for cell in first_rows[0]}
    has_header = header == "yes" or (
        header == "auto" and (named or _is_header(first_rows, separator))
    )
    names = _names(first_rows, path) if has_header else _numbered(len(first_rows[0]))
    found = Dialect(separator=separator, names=names, has_header=has_header, skipped=skipped)
    return found, text


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def _names(first_rows: list[list[str]], path: Path) -> tuple[str, ...]:
    """Return the names of the header, and a generated one for each empty name but the first."""
    if len(first_rows) == 1:
        raise EmptyData(
            f"{path}: a header but no rows",
            "Add at least one row of data, or read the first row as data with --header no.",
        )
    names = tuple(cell.strip() for cell in first_rows[0])
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{path}: duplicate column '{twice[0]}'", "Rename one of the columns.")
    return tuple(name or (f"column {i + 1}" if i else "") for i, name in enumerate(names))


def _check_quotes(text: str, separator: str, path: Path, skipped: int) -> None:
    """Raise DataError if a quote is not closed: the cell would have the rest of the file."""
    reader, first = csv.reader(io.StringIO(text), delimiter=separator, strict=True), 1
    try:
        for _ in reader:
            first = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {first + skipped}: {error}", "Check for a quote that is not closed."
        ) from error


def _separator(text: str, path: Path) -> str:
    """Return the separator that splits all first rows into the same number of cells.

    Semicolon before comma: a comma can be the decimal comma of numbers.
    """
    sample = text[:_SAMPLE_CHARS]
    if len(text) > len(sample):  # without a row that is cut
        sample = sample[: sample.rfind("\n") + 1] or sample
    fits = {}
    for separator in SEPARATORS:
        try:
            found = [row for _, row in rows(sample, separator, path)][:_SAMPLE_ROWS]
        except DataError:
            continue
        if found and len(found[0]) > 1 and len({len(row) for row in found}) == 1:
            fits[separator] = found
    if "," in fits and len(fits) > 1:
        other = next(iter(fits))
        cells = [cell.strip() for row in fits[other] for cell in row]
        commas = any("," in cell for cell in cells)
        if commas and not any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells):
            return ","
    if fits:
        return next(iter(fits))
    line = sample.lstrip("\n").partition("\n")[0]
    return "," if "," in line else max(reversed(SEPARATORS), key=line.count)


def _is_header(first_rows: list[list[str]], separator: str) -> bool:
    """Return whether the first row is a header.

    It is a header in three cases:

    - None of its cells is a number, a date or a truth value, and most of them do not occur again
      in their column.
    - One of its cells is a name and the cell below it is a number. A mark of a missing value is
      not a name.
    - Its cells are empty, 0, 1, ...: pandas writes this header for numbered columns and an index.
    """
    first, second = first_rows[0], [*first_rows, []][1]
    words = [not _is_value(cell, separator) for cell in first]
    named = [word and not is_missing(cell) for word, cell in zip(words, first, strict=True)]
    if all(words) and any(named):
        again = sum(
            any(cell == row[i] for row in first_rows[1:] if i < len(row))
            for i, cell in enumerate(first)
            if named[i]
        )
        return 2 * again < sum(named)
    above = any(
        name and _is_value(cell, separator) for name, cell in zip(named, second, strict=False)
    )
    numbered = not first[0] and first[1:] == [str(i) for i in range(len(first) - 1)]
    return above or (numbered and len(first) > 1)


def _is_value(cell: str, separator: str) -> bool:
    bare = cell.strip()
    if to_number(bare) is not None or _VALUE.fullmatch(bare):
        return True
    return separator != "," and _DECIMAL_COMMA.fullmatch(bare) is not None
