"""Compare the gradients of kernels among which the time alone would choose."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
ROUNDING = 0.05
"""More than rounding makes of a gradient, by the norm of the difference."""
_SMALL = 1e-4  # of the largest gradient of a parameter: terms that cancel leave only rounding


def most_apart(right: Sequence[FloatArray], others: Sequence[FloatArray]) -> float:
    """Return the largest relative difference of the gradients of a parameter, by norm.

    A gradient of ``right`` that is not finite is not compared. The difference of a tiny one is
    relative to 1e-4 of the largest one of ``right``, by the root mean square of the elements.
    """
    least = _SMALL * max(filter(np.isfinite, map(_size, right)), default=0.0)
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
