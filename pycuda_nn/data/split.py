"""Split rows into train, validation and test parts; the seed determines the parts."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.arrays import Array, Label
from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError, DataError
from pycuda_nn.rng import Purpose, shuffled

_LOG = logging.getLogger("pycuda_nn")
PARTS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """The three parts of a source; a missing part is a dataset without rows.

    Example:
        >>> import pycuda_nn as nn
        >>> parts = nn.load_splits("digits")
        >>> parts.test.name
        'digits, test part'
        >>> train, valid, test = nn.load_splits("digits")
    """

    train: Dataset
    valid: Dataset
    test: Dataset

    def __iter__(self) -> Iterator[Dataset]:
        """Yield the parts in this order, as :func:`split` returns them."""
        return iter((self.train, self.valid, self.test))


def split(
    data: Dataset, fractions: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0
) -> tuple[Dataset, Dataset, Dataset]:
    """Return (train, validation, test); rows stay in their order.

    The share of a class in each part is exact to within two rows. The same data, fractions and
    seed give the same parts on every machine.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"), (0.5, 0.25, 0.25), seed=1)
        >>> len(train)
        898

    Raises:
        ConfigError: ``fractions`` are not three numbers of at least 0 with sum 1, or the first
            is 0.
        DataError: A part with a fraction above 0 would have no rows.
    """
    rows = rows_of_parts(data.y, data.classes, fractions, seed, data.name)
    parts = [
        data.take(own, f"{data.name}, {name} part") for own, name in zip(rows, PARTS, strict=True)
    ]
    return parts[0], parts[1], parts[2]


def rows_of_parts(
    y: Array,
    classes: tuple[Label, ...] | None,
    fractions: Sequence[float],
    seed: int,
    name: str,
) -> list[npt.NDArray[np.intp]]:
    """Return the rows of each part for targets ``y`` as in a dataset; see :func:`split`."""
    check_fractions(fractions)
    edges = np.cumsum([0.0, *fractions[:2]])
    part = _part_of_row(y, classes, edges, seed)
    out = []
    for number, part_name in enumerate(PARTS):
        rows = np.flatnonzero(part == number)
        if fractions[number] > 0 and not len(rows):
            raise DataError(
                f"{name}: {'1 row is' if len(y) == 1 else f'{len(y)} rows are'} too few for a "
                f"{part_name} part of {fractions[number]:g}",
                "Use more rows or another fraction.",
            )
        out.append(rows)
    _tell_of_classes(y[out[0]], classes, name)
    return out


def _tell_of_classes(y: Array, classes: tuple[Label, ...] | None, name: str) -> None:
    """Warn if training has no row of a class: the network never learns to predict it."""
    if classes is None:
        return
    absent = np.flatnonzero(np.bincount(y, minlength=len(classes)) == 0)
    if len(absent):
        _LOG.warning(
            "%s: no training rows of %d of %d classes, first '%s'",
            name, len(absent), len(classes), classes[absent[0]],
        )  # fmt: skip


def check_fractions(fractions: Sequence[float]) -> None:
    """Raise ConfigError unless there are three fractions with sum 1, the first above 0."""
    good = len(fractions) == 3 and all(0 <= part <= 1 for part in fractions)
    if not good or not math.isclose(sum(fractions), 1.0, abs_tol=1e-6) or fractions[0] == 0:
        raise ConfigError(
            f"invalid fractions {','.join(f'{part:g}' for part in fractions)}: "
            "expected the shares of train, validation and test, with sum 1",
            "For example 0.6,0.2,0.2; the last two can be 0.",
        )


def _part_of_row(
    y: Array, classes: tuple[Label, ...] | None, edges: npt.NDArray[np.float64], seed: int
) -> npt.NDArray[np.intp]:
    """Return the part of every row: 0, 1 or 2.

    Rows are shuffled, then sorted by class. The cut of a class is the difference of two rounded
    running totals, so that the rounding errors of many small classes do not add up.
    """
    order = shuffled(len(y), seed, Purpose.SPLIT)
    if classes is not None:
        order = order[np.argsort(y[order], kind="stable")]
        counts = np.bincount(y, minlength=len(classes))
    else:
        counts = np.array([len(y)])
    part = np.empty(len(y), dtype=np.intp)
    ends = np.cumsum(counts)
    for end, count in zip(ends, counts, strict=True):
        rows = order[end - count : end]
        before, until = np.rint(edges * (end - count)), np.rint(edges * end)
        cut1 = int(until[1] - before[1])
        cut2 = max(cut1, int(until[2] - before[2]))
        part[rows[:cut1]] = 0
        part[rows[cut1:cut2]] = 1
        part[rows[cut2:]] = 2
    return part
