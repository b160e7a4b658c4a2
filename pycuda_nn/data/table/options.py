"""How a table is read and encoded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pycuda_nn.errors import ConfigError, did_you_mean

MISSING_CHOICES = ("impute", "refuse")
TEXT_CHOICES = ("auto", "one-hot", "hash", "refuse")
HEADER_CHOICES = ("auto", "yes", "no")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is read and encoded.

    Example:
        >>> import pycuda_nn as nn
        >>> nn.TableOptions(drop=("name",), missing="refuse").text
        'auto'

    Attributes:
        drop: Columns to leave out, by name.
        missing: ``impute`` fills a missing cell of the features with the mean of the column and
            adds a column that marks it; ``refuse`` raises an error.
        text: ``one-hot`` adds a column for each value, ``hash`` 64 columns for all values of a
            column; ``auto`` hashes columns with more than 64 values, and refuses those in which
            most rows have their own value. ``refuse`` raises an error for each text column.
        na: Texts that mark a missing cell, in addition to empty cells, ``?``, ``-``, ``NA``,
            ``n/a``, ``NaN``, ``null`` and ``None`` in any case.
        header: Whether the first row of a CSV file has the names: ``yes``, ``no`` or ``auto``.
    """

    drop: tuple[str, ...] = ()
    missing: str = "impute"
    text: str = "auto"
    na: tuple[str, ...] = ()
    header: str = "auto"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(f"unknown {name} = {value!r}", did_you_mean(str(value), choices))
        for name in ("drop", "na"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TableOptions:
        """Return the options of :meth:`as_dict`."""
        return cls(**values)


_CHOICES = {"missing": MISSING_CHOICES, "text": TEXT_CHOICES, "header": HEADER_CHOICES}
