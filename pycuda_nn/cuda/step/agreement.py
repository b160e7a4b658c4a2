"""Compare the gradients of kernels among which the time alone would choose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
ROUNDING = 0.05
"""More than rounding makes of a gradient, by the norm of the difference."""


def most_apart(right: Sequence[FloatArray], others: Sequence[FloatArray]) -> float:
    """Return the largest relative difference of the gradients of a parameter, by norm.

    A gradient of ``right`` that is not finite is not compared.
    """
    return max(map(_apart, right, others), default=0.0)


def _apart(one: FloatArray, other: FloatArray) -> float:
    norm = float(np.linalg.norm(one))
    if not np.isfinite(norm):
        return 0.0
    apart = float(np.linalg.norm(other - one))
    if apart == 0.0:
        return 0.0
    return apart / norm if norm and np.isfinite(apart) else float("inf")
