"""Check and convert arrays of features and targets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import DataError, EmptyData, did_you_mean

Array = npt.NDArray[Any]
Label = str | int | float

_LOG = logging.getLogger("pycuda_nn")
NARROW = 1e-5  # values whose range is this share of their mean: float32 has 7 digits
TASKS = ("auto", "classify", "regress")
_CHUNK_ROWS = 8192  # checks and copies read a mapped file in pieces of this many rows


def check_features(x: Array, *, name: str, columns: Sequence[str] | None = None) -> Array:
    """Return ``x`` as float32 rows; a C-contiguous float32 array or memory map is not copied."""
    x = x if isinstance(x, np.ndarray) else np.asarray(x)
    if x.dtype.kind not in "fiub":
        raise DataError(f"{name}: features of type {x.dtype}, not numbers", "Convert the columns.")
    if x.ndim < 2:
        raise DataError(
            f"{name}: features have shape {x.shape}",
            "Pass an array of shape (rows, columns), with one sample per row.",
        )
    if x.shape[0] == 0 or x.size == 0:
        raise EmptyData(
            f"{name}: empty array of shape {x.shape}", "Pass at least one row and one column."
        )
    flat = x.reshape(len(x), -1)
    with np.errstate(over="ignore"):
        features = np.ascontiguousarray(flat, dtype=np.float32)
    _check_finite(features, name=name, columns=columns)
    if flat.dtype.kind != "b" and flat.dtype.itemsize >= features.itemsize and flat is not features:
        _tell_of_rounding(flat, features, name, columns)
    return features


def _tell_of_rounding(x: Array, features: Array, name: str, columns: Sequence[str] | None) -> None:
    """Warn if values that differ in ``x`` are the same float32, such as times in seconds."""
    low, high = features.min(axis=0).astype(float), features.max(axis=0).astype(float)
    narrow = np.flatnonzero(high - low < NARROW * np.maximum(np.abs(low), np.abs(high)))
    for column in (int(place) for place in narrow):
        own, kept = np.unique(x[:, column]), len(np.unique(features[:, column]))
        if kept < len(own):
            label = f"column {column}" if columns is None else f"column '{columns[column]}'"
            _LOG.warning(
                "%s: %s: float32 rounds %d different values (%s to %s) to %d; "
                "subtract the mean before saving",
                name, label, len(own), own[0], own[-1], kept,
            )  # fmt: skip
            return


def _check_finite(x: Array, *, name: str, columns: Sequence[str] | None) -> None:
    bad, first = 0, None
    for start in range(0, len(x), _CHUNK_ROWS):
        chunk = x[start : start + _CHUNK_ROWS]
        wrong = ~np.isfinite(chunk)
        count = int(np.count_nonzero(wrong))
        if count and first is None:
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            first = (start + row, column, chunk[row, column])
        bad += count
    if first is None:
        return
    row, column, value = first
    label = f"column {column}" if columns is None else f"column '{columns[column]}'"
    values = "1 value is" if bad == 1 else f"{bad} values are"
    raise DataError(
        f"{name}: {values} not a finite float32; the first is {value} in row {row}, {label} "
        "(counted from 0)",
        "Remove or fill these rows before training.",
    )


def check_targets(
    y: Array, *, task: str, name: str, classes: tuple[Label, ...] | None = None
) -> tuple[Array, tuple[Label, ...] | None]:
    """Return ``y`` and ``classes`` as in a dataset; see :meth:`Dataset.from_arrays`."""
    targets = _typed(np.asarray(y))
    if classes is None and _task_of(targets, task, name) == "regress":
        return _check_targets(targets, name), None
    return _class_numbers(targets, classes, name)


def _typed(y: Array) -> Array:
    """Convert an object array that contains only numbers, such as a table column, to numbers."""
    if y.dtype.kind == "O" and y.size and all(isinstance(value, Real) for value in y.flat):
        return np.array(y.tolist())
    return y


def _task_of(y: Array, task: str, name: str) -> str:
    if task not in TASKS:
        raise DataError(f"unknown task '{task}'", did_you_mean(task, TASKS))
    if task != "auto":
        return task
    if y.dtype.kind == "f" or (y.ndim == 2 and y.shape[1] > 1):
        return "regress"
    if y.dtype.kind in "iubUSO":
        return "classify"
    raise DataError(f"{name}: unsupported label type {y.dtype}", "Use numbers or text.")


def _check_targets(y: Array, name: str) -> Array:
    if y.dtype.kind not in "fiub":
        raise DataError(
            f"{name}: targets of type {y.dtype}, not numbers", "Use task 'classify' for labels."
        )
    if y.ndim not in (1, 2) or y.size == 0:
        raise DataError(
            f"{name}: targets have shape {y.shape}", "Pass an array of shape (n,) or (n, k)."
        )
    with np.errstate(over="ignore"):
        real = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float32)
    _check_finite(real, name=f"{name}: targets", columns=None)
    if y.dtype.itemsize > real.itemsize:
        exact = np.ascontiguousarray(y.reshape(len(y), -1), dtype=np.float64)
        if np.any(np.ptp(exact, axis=0) < NARROW * np.abs(exact.mean(axis=0))):
            return exact
    return real


def _class_numbers(
    y: Array, classes: tuple[Label, ...] | None, name: str
) -> tuple[Array, tuple[Label, ...]]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1:
        raise DataError(
            f"{name}: labels have shape {y.shape}",
            "Pass one label per row, shape (n,). Convert one-hot rows with y.argmax(axis=1).",
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise DataError(f"{name}: a label is not a finite number", "Remove these rows.")
    try:
        values, numbers = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise DataError(
            f"{name}: labels have different types", "Use one type for all labels."
        ) from error
    found = tuple(_plain(value) for value in values)
    if classes is None:
        if len(found) < 2:
            raise DataError(f"{name}: all labels are {found[0]!r}", "Use at least two classes.")
        return numbers.astype(np.int32), found
    lookup = {label: i for i, label in enumerate(classes)}
    unknown = [label for label in found if label not in lookup]
    if unknown:
        row = int(np.flatnonzero(numbers == found.index(unknown[0]))[0])
        raise DataError(
            f"{name}: unknown label {unknown[0]!r} in row {row} (counted from 0)"
            + (f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""),
            f"Known labels: {', '.join(map(repr, classes[:20]))}{', ...' * (len(classes) > 20)}",
        )
    table = np.array([lookup[label] for label in found], dtype=np.int32)
    return table[numbers], classes


def _plain(value: Any) -> Label:
    """Return a Python value: class labels are stored as JSON."""
    if isinstance(value, np.bool_ | bool):
        return int(value)
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bytes):
        return plain.decode("utf-8", "replace")
    return plain if isinstance(plain, str | int | float) else str(plain)
