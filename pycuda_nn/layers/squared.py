"""Half the squared error, for real targets; ``squared.cuh`` has its kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.base import Array
from pycuda_nn.layers.loss import Loss, LossKernels
from pycuda_nn.layers.memory import Memory


@dataclass(frozen=True)
class Squared(Loss):
    """Half the squared error, summed over the outputs; the error is the root mean square."""

    name: ClassVar[str] = "squared"
    of_classes: ClassVar[bool] = False
    kernels: ClassVar[LossKernels | None] = LossKernels(
        source="layers/squared.cuh",
        step="squared_error",
        metrics="squared_metrics",
        row="squared_row",
    )

    def fits(self, classes: int) -> bool:
        """See :class:`Loss`."""
        return classes == 0

    def outputs(self, classes: int, targets: int) -> int:
        """See :class:`Loss`."""
        return targets

    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn outputs z (m, k) into (z - y) / m; return the mean of 1/2 sum_k (z - y)**2."""
        np.subtract(z, y, out=z)
        loss = 0.5 * float(np.vdot(z, z)) / len(z)
        z /= len(z)
        return loss

    def wrong(self, z: Array, y: Array) -> float:
        """See :class:`Loss`."""
        return float(np.square(z - y, dtype=np.float64).sum())

    def error(self, wrong: float, rows: int, outputs: int) -> float:
        """See :class:`Loss`."""
        return math.sqrt(wrong / (rows * outputs))
