"""Cutting rows into train, validation and test, the same way for the same seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.dataset import Dataset
from pycuda_nn.errors import ConfigError, DataError
from pycuda_nn.rng import Purpose, shuffled

PARTS = ("train", "valid", "test")


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """The three parts of one source; a part that is not there has no rows."""

    train: Dataset
    valid: Dataset
    test: Dataset


def split(
    data: Dataset, fractions: Sequence[float] = (0.6, 0.2, 0.2), seed: int = 0
) -> tuple[Dataset, Dataset, Dataset]:
    """Return (train, validation, test) with rows in their old order.

    Classes keep their shares to within two rows a class and part. The same data, fractions and
    seed give the same parts on every machine.

    Raises:
        ConfigError: Not three fractions of at least 0 with sum 1 and a training part.
        DataError: A part with a fraction above 0 would have no rows.
    """
    check_fractions(fractions)
    edges = np.cumsum([0.0, *fractions[:2]])
    part = _part_of_row(data, edges, seed)
    out = []
    for number, name in enumerate(PARTS):
        rows = np.flatnonzero(part == number)
        if fractions[number] > 0 and not len(rows):
            raise DataError(
                f"{data.name}: {len(data)} rows are too few for a {name} part of "
                f"{fractions[number]:g}",
                "Give more rows or another fraction.",
            )
        out.append(data.take(rows, f"{data.name}, {name} part"))
    return out[0], out[1], out[2]


def check_fractions(fractions: Sequence[float]) -> None:
    """Raise ConfigError unless three parts with sum 1 and some training rows are asked for."""
    good = len(fractions) == 3 and all(0 <= part <= 1 for part in fractions)
    if not good or not math.isclose(sum(fractions), 1.0, abs_tol=1e-6) or fractions[0] == 0:
        raise ConfigError(
            f"fractions {','.join(f'{part:g}' for part in fractions)}: "
            "must be three shares for train, validation, test with sum 1",
            "For example 0.6,0.2,0.2; the last two may be 0.",
        )


def _part_of_row(data: Dataset, edges: npt.NDArray[np.float64], seed: int) -> npt.NDArray[np.intp]:
    """Return 0, 1 or 2 for every row.

    Rows are shuffled, then sorted by class. The cut of a class is the difference of two rounded
    running totals, so the roundings of many small classes do not add up.
    """
    order = shuffled(len(data), seed, Purpose.SPLIT)
    if data.classes is not None:
        order = order[np.argsort(data.y[order], kind="stable")]
        counts = np.bincount(data.y, minlength=len(data.classes))
    else:
        counts = np.array([len(data)])
    part = np.empty(len(data), dtype=np.intp)
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
