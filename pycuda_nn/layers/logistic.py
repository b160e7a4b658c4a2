"""Logistic loss of two classes; ``logistic.cuh`` has its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.activation import sigmoid
from pycuda_nn.layers.base import Array
from pycuda_nn.layers.loss import Loss, LossKernels
from pycuda_nn.layers.memory import Memory


@dataclass(frozen=True)
class Logistic(Loss):
    """Binary cross-entropy of one output, the logit of class 1, in nats."""

    name: ClassVar[str] = "logistic"
    kernels: ClassVar[LossKernels | None] = LossKernels(
        source="layers/logistic.cuh",
        step="logistic_xent",
        metrics="logistic_metrics",
        row="logistic_row",
    )

    def fits(self, classes: int) -> bool:
        """See :class:`Loss`."""
        return classes == 2

    def outputs(self, classes: int, targets: int) -> int:
        """See :class:`Loss`."""
        return 1

    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn logits z (m, 1) into (sigmoid(z) - y) / m; return the mean loss.

        Loss of a row: max(z, 0) - z y + log(1 + exp(-|z|)), which cannot overflow. If y is 1, the
        first two terms are computed as max(-z, 0): no sum is the difference of two larger numbers.
        """
        tmp = memory.array("tmp", z.shape)
        y = y.reshape(z.shape)
        np.abs(z, out=tmp)
        wrong = np.maximum(np.where(y == 1, -z, z), 0.0)
        total = np.log1p(np.exp(-tmp)).sum() + wrong.sum()
        sigmoid(z, z)
        np.subtract(z, y, out=z)
        z /= len(z)
        return float(total) / len(z)

    def wrong(self, z: Array, y: Array) -> float:
        """See :class:`Loss`."""
        return float(np.count_nonzero((z[:, 0] > 0) != y))

    def logits(self, z: Array) -> Array:
        """See :class:`Loss`."""
        return np.concatenate([np.zeros_like(z), z], axis=1)
