"""Rows to train on, checked once when they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.arrays import Array, Label, check_features, check_targets
from pycuda_nn.data.table.encoding import Encoding
from pycuda_nn.errors import DataError, EmptyData


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Features and targets; create it with :meth:`from_arrays`, which checks them.

    Example:
        >>> import numpy as np
        >>> import pycuda_nn as nn
        >>> data = nn.Dataset.from_arrays(np.eye(4), np.array(["a", "b", "a", "b"]))
        >>> len(data), data.classes
        (4, ('a', 'b'))

    Attributes:
        x: float32, C-contiguous, shape (n, d).
        y: int32 class numbers, shape (n,), or targets, shape (n, k): float32, or float64 if
            they differ by less than float32 resolves.
        classes: Sorted labels; the label of class number i is ``classes[i]``. ``None`` for
            regression.
        columns: Names of the features; ``None`` if the source has no names.
        name: Name of the source, for messages.
        encoding: How the features were made from the columns of a table; ``None`` for arrays.
    """

    x: Array
    y: Array
    classes: tuple[Label, ...] | None
    columns: tuple[str, ...] | None = None
    name: str = "data"
    encoding: Encoding | None = None

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def from_arrays(
        cls,
        x: Array,
        y: Array,
        *,
        task: str = "auto",
        columns: Sequence[str] | None = None,
        name: str = "data",
        classes: tuple[Label, ...] | None = None,
    ) -> Dataset:
        """Check and convert arrays of any numeric type.

        Args:
            x: Shape (n, ...); all axes but the first are flattened.
            y: Labels (integers, booleans, text), shape (n,), or real targets, (n,) or (n, k).
            task: ``classify``, ``regress``, or ``auto``: regress for real targets, else classify.
            columns: Names of the features.
            name: Name of the source, for messages.
            classes: Known labels; any other label is an error. Default: the labels in ``y``.

        Raises:
            DataError: No rows, a shape that does not fit, a NaN or an infinity.
        """
        features = check_features(x, name=name, columns=columns)
        targets = np.asarray(y)
        rows = len(targets) if targets.ndim else 1
        if not targets.ndim or rows != len(features):
            raise DataError(
                f"{name}: {len(features)} rows of features but {rows} of labels",
                "Pass one label for each row.",
            )
        names = None if columns is None else tuple(columns)
        numbers, found = check_targets(targets, task=task, name=name, classes=classes)
        return cls(x=features, y=numbers, classes=found, columns=names, name=name)

    def take(self, rows: npt.NDArray[np.intp], name: str) -> Dataset:
        """Return a copy of ``rows`` in memory, named ``name``."""
        return replace(self, x=self.x[rows], y=self.y[rows], name=name)


def task_line(train: Dataset) -> str:
    """Return the task of the training rows in one line, for users."""
    rows = "1 row" if len(train) == 1 else f"{len(train):,} rows"
    if train.classes is not None:
        return f"classification, {len(train.classes):,} classes, from {rows}"
    encoding = train.encoding
    goal = f" of '{encoding.target}'" if encoding is not None and encoding.target else ""
    mean, deviation = float(train.y.mean(dtype=float)), float(train.y.std(dtype=float))
    return f"regression{goal}, mean {mean:.4g}, deviation {deviation:.4g}, from {rows}"


def in_order(columns: Sequence[str] | None, wanted: Sequence[str] | None) -> bool:
    """Return whether ``columns`` can be the ``wanted`` columns in their order.

    Columns are comparable only by name. If a side has no names, or no name in common with the
    other (generated names of a file without names), the result is True.
    """
    if columns is None or wanted is None:
        return True
    return list(columns) == list(wanted) or not set(columns) & set(wanted)


def concat(*parts: Dataset) -> Dataset:
    """Return the rows of all ``parts`` in order.

    Example:
        Train on the training and validation rows once the settings are chosen:

        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> len(nn.concat(train, valid)) == len(train) + len(valid)
        True
    """
    if not parts:
        raise EmptyData("concat: no data", "Pass at least one dataset.")
    first = parts[0]
    for part in parts[1:]:
        if (
            part.x.shape[1] != first.x.shape[1]
            or part.classes != first.classes
            or part.encoding != first.encoding
            or not in_order(part.columns, first.columns)
        ):
            raise DataError(
                f"concat: {first.name} and {part.name} differ in columns or classes",
                "Join parts of one split.",
            )
    x = np.concatenate([part.x for part in parts])
    y = np.concatenate([part.y for part in parts])
    return replace(first, x=x, y=y, name=" + ".join(part.name for part in parts))
