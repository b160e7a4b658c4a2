"""Encode the columns of a table as numbers, by what the training rows contain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.table.columns import Column
from pycuda_nn.data.table.feature import Feature, encode, fit_feature, has_own_texts
from pycuda_nn.data.table.options import TableOptions
from pycuda_nn.data.table.read import Table
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """How the columns of a table become the features of a network.

    It is learned from the training rows only and stored in the checkpoint.

    Example:
        >>> import pathlib, tempfile
        >>> import pycuda_nn as nn
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "pets.csv")
        ...     _ = file.write_text("kind,age,tame\\ncat,2,yes\\ndog,,yes\\nfox,4,no\\n")
        ...     data = nn.load_data(file)
        >>> data.columns
        ('kind=cat', 'kind=dog', 'kind=fox', 'age', 'age missing')
        >>> data.x[1].tolist()
        [0.0, 1.0, 0.0, 3.0, 1.0]

    Attributes:
        features: One for each column, in the order of the training file.
        target: Name of the target column.
        options: How the table was read.
        target_style: How the numbers of the target were written.
    """

    features: tuple[Feature, ...]
    target: str | None
    options: TableOptions
    target_style: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for feature in self.features for name in feature.names())

    @property
    def required(self) -> tuple[str, ...]:
        """Names of the columns that a file must have."""
        return tuple(feature.name for feature in self.features if feature.kind != "empty")

    def of_count(self, count: int) -> tuple[str, ...]:
        """Return the names of the ``count`` columns of a file without names.

        They are those of the training file or, of a file with fewer, the required ones.
        """
        names = tuple(feature.name for feature in self.features)
        return names if count == len(names) else self.required

    def kinds(self) -> dict[str, tuple[bool, str]]:
        """Return for each column whether it is read as text, and its style."""
        return {feature.name: (feature.is_text, feature.style) for feature in self.features}

    @classmethod
    def fit(
        cls,
        table: Table,
        rows: npt.NDArray[np.intp],
        options: TableOptions,
        target_style: str = "",
    ) -> Encoding:
        """Return the encoding that the training ``rows`` of a table ask for.

        Raises:
            DataError: A column cannot be encoded with these options; the message has the option
                to change.
        """
        if options.missing == "refuse":
            _check_complete(table.columns.values(), table)
        if options.text == "auto":
            _check_own_texts(table)
        features = tuple(
            fit_feature(column, rows, table, options) for column in table.columns.values()
        )
        if all(feature.kind == "empty" for feature in features):
            raise DataError(f"{table.path}: all feature cells are missing", "Check the separator.")
        return cls(
            features=features, target=table.target, options=options, target_style=target_style
        )

    def apply(self, table: Table) -> tuple[Array, list[str]]:
        """Return float32 features of all rows, and a sentence for each column that differs.

        Raises:
            DataError: A cell is not of the type of its column in training.
        """
        out = np.zeros((table.rows, len(self.names)), dtype=np.float32)
        notes: list[str] = []
        start = 0
        names = self.of_count(len(table.columns))
        columns = dict(zip(names, table.columns.values(), strict=False))
        if table.has_names:
            columns = dict(table.columns)
        if self.options.missing == "refuse":
            _check_complete([columns[name] for name in self.required], table)
        for feature in self.features:
            width = len(feature.names())
            if width:
                part = out[:, start : start + width]
                notes += encode(feature, columns[feature.name], table, part)
            start += width
        return out, notes

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Encoding:
        """Return the encoding of :meth:`as_dict`."""
        features = [
            Feature(**{**feature, "values": tuple(feature["values"])})
            for feature in values["features"]
        ]
        options = TableOptions.from_dict(values["options"])
        return cls(
            features=tuple(features),
            target=values["target"],
            options=options,
            target_style=values.get("target_style", ""),  # older versions wrote none
        )

    def summary(self) -> str:
        """Return one sentence for users; empty if all columns are complete numbers."""
        kinds = [feature.kind for feature in self.features]
        counts = {
            "text": kinds.count("one-hot"),
            "hashed text": kinds.count("hash"),
            "date": kinds.count("date"),
            "true or false": kinds.count("bool"),
            "with missing cells": sum(feature.marked for feature in self.features),
            "empty": kinds.count("empty"),
        }
        special = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        if not special:
            return ""
        return f"{len(self.names):,} features from {len(self.features):,} columns: {special}"


def _check_own_texts(table: Table) -> None:
    names = [column.name for column in table.columns.values() if has_own_texts(column)]
    if names:
        columns = ", ".join(f"'{name}'" for name in names)
        drops = " ".join(f"--drop {quote(name)}" for name in names)
        raise DataError(
            f"{table.path}: most rows have their own text in {columns}",
            f"Leave out what does not describe the rows: {drops}\nOr use all texts: --text hash",
        )


def _check_complete(columns: Iterable[Column], table: Table) -> None:
    for column in columns:
        gaps = np.flatnonzero(column.missing())
        if len(gaps):
            more = f" and {len(gaps) - 1:,} more" if len(gaps) > 1 else ""
            where = table.place(int(gaps[0]))
            raise DataError(
                f"{table.path}, {where}: a cell of column '{column.name}' is missing{more}",
                "Fill the cells, or use --missing impute.",
            )
