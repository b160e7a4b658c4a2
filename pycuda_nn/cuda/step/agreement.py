"""Compare the gradients of kernels among which the time alone would choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class Tolerance:
    """More than rounding makes of a gradient.

    Attributes:
        relative: Of its norm.
        small: Of the largest gradient of a parameter; in smaller ones, terms that cancel leave only
            rounding.
    """

    relative: float
    small: float


FINE = Tolerance(relative=0.05, small=1e-4)
COARSE = Tolerance(relative=0.5, small=1e-2)  # between kernels that round to 16 bits elsewhere


def most_apart(
    right: Sequence[FloatArray], others: Sequence[FloatArray], small: float = FINE.small
) -> float:
    """Return the largest relative difference of the gradients of a parameter, by norm.

    A gradient of ``right`` that is not finite is not compared. The difference of one below
    ``small`` times the largest one of ``right`` is relative to that. The size is the root mean
    square of the elements.
    """
    least = small * max(filter(np.isfinite, map(_size, right)), default=0.0)
    return max((_apart(*pair, least) for pair in zip(right, others, strict=True)), default=0.0)


def _apart(one: FloatArray, other: FloatArray, least: float) -> float:
    size = _size(one)
    if not np.isfinite(size):
        return 0.0
    apart, size = _size(other - one), max(size, least)
    if apart == 0.0:
        return 0.0
    return apart / size if size and np.isfinite(apart) else float("inf")


def _size(gradient: FloatArray) -> float:
    """Return the root mean square of the elements."""
    return float(np.linalg.norm(gradient)) / math.sqrt(gradient.size)
