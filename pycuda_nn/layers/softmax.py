"""Softmax cross-entropy over classes; ``softmax.cuh`` has its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.base import Array
from pycuda_nn.layers.loss import Loss, LossKernels
from pycuda_nn.layers.memory import Memory


@dataclass(frozen=True)
class Softmax(Loss):
    """Cross-entropy of the softmax of one output per class, in nats."""

    name: ClassVar[str] = "softmax"
    kernels: ClassVar[LossKernels | None] = LossKernels(
        source="layers/softmax.cuh",
        step="softmax_xent",
        metrics="softmax_metrics",
        row="softmax_row",
    )

    def fits(self, classes: int) -> bool:
        """See :class:`Loss`."""
        return classes > 0

    def outputs(self, classes: int, targets: int) -> int:
        """See :class:`Loss`."""
        return classes

    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn logits z (m, k) into (softmax(z) - onehot(y)) / m; return the mean loss."""
        rows, outputs = z.shape
        starts = memory.once("starts", lambda: np.arange(0, rows * outputs, outputs))
        place = memory.array("place", (rows,), np.intp)
        row = memory.array("row", (rows, 1))
        np.add(y, starts, out=place)
        np.subtract(z, np.maximum.reduce(z, axis=1, keepdims=True, out=row), out=z)
        picked = np.add.reduce(z.ravel().take(place))
        np.exp(z, out=z)
        np.add.reduce(z, axis=1, keepdims=True, out=row)
        total = np.add.reduce(np.log(row), axis=None) - picked  # all terms have the same sign
        np.divide(z, np.multiply(row, len(z), out=row), out=z)
        z.ravel()[place] -= 1.0 / len(z)
        return float(total) / len(z)
