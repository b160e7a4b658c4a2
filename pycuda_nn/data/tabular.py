"""Datasets from tables: read, split and encode, by what the training rows contain."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.arrays import Label, check_features, check_targets
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.data.split import PARTS, Splits, rows_of_parts
from pycuda_nn.data.table import Encoding, Table, TableOptions, read_table, read_target
from pycuda_nn.errors import DataError

Array = npt.NDArray[Any]
_LOG = logging.getLogger("pycuda_nn")


def load_table(
    path: Path,
    options: TableOptions,
    *,
    target: str | None = None,
    task: str = "auto",
    classes: tuple[Label, ...] | None = None,
    columns: Sequence[str] | None = None,
    encoding: Encoding | None = None,
) -> Dataset:
    """Return all rows of a table, encoded by ``encoding``, or by what the rows contain."""
    table = _read(path, options, target=target, columns=columns, encoding=encoding)
    y, found, style = _targets(table, task, classes)
    if encoding is None:
        encoding = Encoding.fit(table, np.arange(table.rows), options, style)
    return _dataset(table, y, found, encoding)


def load_table_splits(
    path: Path,
    options: TableOptions,
    *,
    fractions: Sequence[float],
    seed: int,
    target: str | None,
    task: str,
) -> Splits:
    """Split a table and encode its rows by what the training rows contain."""
    table = _read(path, options, target=target)
    y, classes, style = _targets(table, task, None)
    rows = rows_of_parts(y, classes, fractions, seed, str(path))
    encoding = Encoding.fit(table, rows[0], options, style)
    data = _dataset(table, y, classes, encoding)
    parts = {
        name: data.take(own, f"{path}, {name} part") for name, own in zip(PARTS, rows, strict=True)
    }
    return Splits(**parts)


def table_features(
    path: Path, *, columns: Sequence[str] | None, encoding: Encoding | None
) -> tuple[Array, tuple[str, ...]]:
    """Return the features of all rows of a table, without labels, and their names."""
    table = _read(path, TableOptions(), labelled=False, columns=columns, encoding=encoding)
    if encoding is None:
        encoding = Encoding.fit(table, np.arange(table.rows), TableOptions())
    return _encode(table, encoding), encoding.names


def _read(
    path: Path,
    options: TableOptions,
    *,
    target: str | None = None,
    labelled: bool = True,
    columns: Sequence[str] | None = None,
    encoding: Encoding | None = None,
) -> Table:
    if encoding is None:
        return read_table(path, options, target=target, labelled=labelled, wanted=columns)
    wanted = encoding.required
    kinds = encoding.kinds()
    if labelled and target is None:
        target = encoding.target
    table = read_table(
        path,
        encoding.options,
        target=target,
        labelled=labelled,
        wanted=wanted,
        kinds=kinds,
        target_style=encoding.target_style,
    )
    if len(table.columns) != len(encoding.of_count(len(table.columns))):  # a file without names
        raise DataError(
            f"{path}: {len(table.columns)} columns, but the model needs {len(wanted)}",
            "Use the columns that the model was trained on.",
        )
    return table


def _targets(
    table: Table, task: str, classes: tuple[Label, ...] | None
) -> tuple[Array, tuple[Label, ...] | None, str]:
    """Return targets, classes, and the style in which the numbers of the target are written."""
    text = all(isinstance(label, str) for label in classes) if classes else None
    target = read_target(table, "classify" if classes else task, text_labels=text)
    if target.why:
        _LOG.info("%s", target.why)
    name = str(table.path)
    y, found = check_targets(target.values, task=target.task, name=name, classes=classes)
    if found is None and classes is None and table.rows > 1 and np.all(y == y[0]):
        raise DataError(
            f"{name}: the target '{table.target}' is {float(y[0, 0]):g} in all rows",
            "Name another column with --target.",
        )
    return y, found, target.style


def _dataset(
    table: Table, y: Array, classes: tuple[Label, ...] | None, encoding: Encoding
) -> Dataset:
    return Dataset(
        x=_encode(table, encoding),
        y=y,
        classes=classes,
        columns=encoding.names,
        name=str(table.path),
        encoding=encoding,
    )


def _encode(table: Table, encoding: Encoding) -> Array:
    x, notes = encoding.apply(table)
    _tell(f"{table.path}: {note}" for note in notes)
    return check_features(x, name=str(table.path), columns=encoding.names)


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        _LOG.warning("%s", note)
