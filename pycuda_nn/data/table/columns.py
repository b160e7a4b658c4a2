"""Columns of a table, and the type of a column of text cells."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

EUROPEAN = "european"  # the decimal comma, and dates with the day first
MISSING = frozenset(("", "?", "-", "--", "na", "n/a", "#n/a", "<na>", "nan", "null", "none"))
# Dates without a zone are in UTC.
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A column with one value per row.

    Attributes:
        name: Its name.
        kind: ``number``, ``bool``, ``date`` or ``text``.
        values: float64, NaN where the cell is missing: the number, 0 or 1, or days since
            1970-01-01. For text the index into ``texts``, int64, -1 where missing.
        texts: Distinct values of a text column, sorted.
        style: How numbers or dates are written: ``comma`` (1,5), ``thousands`` (1,234), a form of
            ``_DATES``, or empty.
    """

    name: str
    kind: str
    values: Array
    texts: tuple[str, ...] = ()
    style: str = ""

    def missing(self) -> npt.NDArray[np.bool_]:
        """Return which cells are missing."""
        gaps: npt.NDArray[np.bool_] = (
            self.values < 0 if self.kind == "text" else np.isnan(self.values)
        )
        return gaps


def month_and_day(column: Column) -> tuple[Array, Array]:
    """Return month and day of the month of each known date, from 1."""
    dates = np.floor(column.values[~column.missing()]).astype("datetime64[D]")
    months = dates.astype("datetime64[M]")
    return months.astype(int) % 12 + 1, (dates - months).astype(int) + 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """Cells of a column as text: row ``i`` has ``texts[codes[i]]``."""

    codes: Array
    texts: tuple[str, ...]


def is_missing(text: str, extra: Collection[str] = ()) -> bool:
    """Return whether the cell marks a missing value; ``extra`` are the marks of the user."""
    bare = text.strip()
    return bare.lower() in MISSING or bare in extra


def to_number(text: str) -> float | None:
    """Return the number that ``text`` is, or None."""
    if "_" in text:  # Python ignores underscores: 1_1 would be 11
        return None
    try:
        return float(text)
    except ValueError:
        return None


def is_code(text: str) -> bool:
    """Return whether ``text`` has digits only and starts with 0, as the zip code 01234."""
    return _CODE.fullmatch(text.strip()) is not None


def _are_codes(known: Sequence[str]) -> bool:
    """Return whether cells are codes, not numbers: digits only, one of them with a leading 0."""
    return any(map(is_code, known)) and all(map(_DIGITS.fullmatch, known))


def typed(
    name: str, cells: Cells, na: Collection[str], prefer: str, *, finds_codes: bool = False
) -> Column:
    """Return the column of text cells in the narrowest type that fits all cells.

    ``prefer`` is the style to use if the cells fit more than one: that of the training, in which
    1.234 is 1234 if it is ``comma``, or ``EUROPEAN``. ``text`` leaves them text, and so does
    ``finds_codes`` if the cells are codes with leading zeros.
    """
    bare = [text.strip() for text in cells.texts]
    gaps = [is_missing(text, na) for text in bare]
    known = [text for text, gap in zip(bare, gaps, strict=True) if not gap]
    if finds_codes and _are_codes(known):
        prefer = "text"
    for kind, style, parse in [] if prefer == "text" else _parsers(known, prefer):
        parsed = [parse(text) for text in known]
        if None not in parsed:
            table = np.full(len(bare), np.nan)
            table[~np.array(gaps, dtype=bool)] = parsed
            column = Column(name=name, kind=kind, style=style, values=table[cells.codes])
            return without(column, na)
    texts = tuple(sorted(set(known)))
    index = {text: i for i, text in enumerate(texts)}
    places = np.array([-1 if gap else index[t] for t, gap in zip(bare, gaps, strict=True)])
    return Column(name=name, kind="text", values=places[cells.codes], texts=texts)


def without(column: Column, na: Collection[str]) -> Column:
    """Return a column of numbers in which the numbers of ``na`` are missing."""
    marks = [number for number in map(to_number, na) if number is not None]
    if column.kind != "number" or not marks:
        return column
    values = np.where(np.isin(column.values, marks), np.nan, column.values)
    return replace(column, values=values)


def as_texts(column: Column) -> Column:
    """Return a column of numbers as text, as a Parquet file stores what a CSV file has as text."""
    if column.kind == "text":
        return column
    words = [f"{value:.17g}" for value in column.values]
    texts, codes = np.unique(words, return_inverse=True)
    cells = Cells(codes=codes, texts=tuple(texts.tolist()))
    return typed(column.name, cells, (), "text")


Parse = Callable[[str], float | None]

_CODE = re.compile(r"0[0-9]+")
_DIGITS = re.compile(r"[0-9]+")
_COMMA = re.compile(r"[-+]?(\d{1,3}(\.\d{3})+|\d*)(,\d+)?([eE][-+]?\d+)?")
_THOUSANDS = re.compile(r"[-+]?\d{1,3}(,\d{3})*(\.\d*)?")
_BOOLS = {"true": 1.0, "false": 0.0}
_DATES = {
    "ymd": r"(?P<y>\d{4})([-/])(?P<m>\d\d?)\2(?P<d>\d\d?)",
    "d.m.y": r"(?P<d>\d\d?)\.(?P<m>\d\d?)\.(?P<y>\d{4})",
    "m/d/y": r"(?P<m>\d\d?)([/-])(?P<d>\d\d?)\2(?P<y>\d{4})",
    "d/m/y": r"(?P<d>\d\d?)([/-])(?P<m>\d\d?)\2(?P<y>\d{4})",
}
_TIME = r"([T ]\s*(?P<H>\d\d?):(?P<M>\d\d)(:(?P<S>\d\d(\.\d+)?))?\s*(?P<Z>Z|[-+]\d\d:?(\d\d)?)?)?"
_DATE_FORMS = {style: re.compile(form + _TIME) for style, form in _DATES.items()}


def _parsers(known: Sequence[str], prefer: str) -> list[tuple[str, str, Parse]]:
    """Return (kind, style, parser) in the order in which they are tried."""
    parsers: list[tuple[str, str, Parse]] = [("number", "", to_number)]
    if known:
        parsers.append(("bool", "", lambda text: _BOOLS.get(text.lower())))
    if prefer == "comma" or any("," in text for text in known):
        parsers += [("number", "thousands", _thousands), ("number", "comma", _decimal_comma)]
    if known and re.match(r"\d", known[0]):
        parsers += [("date", style, _date_parser(style)) for style in _DATES]
    first = {"comma", "d/m/y"} if prefer == EUROPEAN else {prefer} - {""}
    return sorted(parsers, key=lambda parser: parser[1] not in first)


def _decimal_comma(text: str) -> float | None:
    if not _COMMA.fullmatch(text):
        return None
    return to_number(text.replace(".", "").replace(",", "."))


def _thousands(text: str) -> float | None:
    if not _THOUSANDS.fullmatch(text):
        return to_number(text) if "," not in text else None
    return to_number(text.replace(",", ""))


def _date_parser(style: str) -> Parse:
    form = _DATE_FORMS[style]

    def parse(text: str) -> float | None:
        found = form.fullmatch(text)
        return None if found is None else _days(found)

    return parse


def _days(found: re.Match[str]) -> float | None:
    """Return days since 1970 in UTC, or None for a date that does not exist."""
    part = found.groupdict()
    seconds = float(part["S"] or 0)
    try:
        moment = datetime(int(part["y"]), int(part["m"]), int(part["d"]))
        moment += timedelta(hours=int(part["H"] or 0), minutes=int(part["M"] or 0))
        if int(part["H"] or 0) > 24 or int(part["M"] or 0) > 59 or seconds >= 61:
            return None
        if part["Z"] not in (None, "Z"):
            digits = part["Z"][1:].replace(":", "").ljust(4, "0")
            shift = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
            moment += shift if part["Z"][0] == "-" else -shift
    except (ValueError, OverflowError):
        return None
    days = (moment - _EPOCH) / timedelta(days=1) + seconds / 86400
    return days if math.isfinite(days) else None
