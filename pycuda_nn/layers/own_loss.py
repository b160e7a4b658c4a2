"""Losses that are formulas; ``own_numbers.cuh`` and ``own_classes.cuh`` have their kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.base import Array
from pycuda_nn.layers.formulas import class_loss_formula, is_class_loss, number_loss_formula
from pycuda_nn.layers.loss import Loss, LossKernels
from pycuda_nn.layers.memory import Memory
from pycuda_nn.layers.softmax import Softmax
from pycuda_nn.layers.squared import Squared

_FUNCTION = "own_loss"  # name in the kernels


@dataclass(frozen=True)
class NumberLoss(Squared):
    """A formula of output ``z`` and target ``y``, summed over the outputs; the error is the RMSE.

    Example:
        >>> import numpy as np
        >>> from pycuda_nn.layers import Memory, NumberLoss
        >>> huber = NumberLoss("where(abs(z - y) < 1, 0.5 * (z - y)**2, abs(z - y) - 0.5)")
        >>> z = np.array([[3.0], [0.5]])
        >>> huber.gradient(z, np.zeros((2, 1)), Memory(float))
        1.3125
        >>> z
        array([[0.5 ],
               [0.25]])
    """

    text: str
    name: ClassVar[str] = "formula"
    kernels: ClassVar[LossKernels | None] = LossKernels(
        source="layers/own_numbers.cuh", step="own_error", metrics="own_metrics", row="own_row"
    )

    def __post_init__(self) -> None:
        number_loss_formula(self.text)  # raises ConfigError

    @property
    def label(self) -> str:
        """See :class:`Loss`."""
        return self.text

    def functions(self) -> str:
        """See :class:`Loss`."""
        return number_loss_formula(self.text).functions(_FUNCTION)

    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn outputs z (m, k) into the gradient of the mean loss; return the mean."""
        found, y = number_loss_formula(self.text), y.astype(z.dtype, copy=False)
        total = found.value.evaluate(z=z, y=y).sum(dtype=np.float64)
        slope = found.slope.evaluate(z=z, y=y)
        np.divide(slope, len(z), out=z)
        return float(total) / len(z)


@dataclass(frozen=True)
class ClassLoss(Softmax):
    """A formula of the log-softmax of each class, summed over the classes.

    Example:
        >>> from pycuda_nn.layers import ClassLoss
        >>> focal = ClassLoss("-y * (1 - p)**2 * logp")  # Lin et al. 2017, eq. 4
        >>> smoothed = ClassLoss("-(0.9 * y + 0.1 / classes) * logp")  # Szegedy et al. 2016
        >>> weighted = ClassLoss("-y * where(k < 1, 5, 1) * logp")  # class 0 counts five times
    """

    text: str
    name: ClassVar[str] = "formula"
    kernels: ClassVar[LossKernels | None] = LossKernels(
        source="layers/own_classes.cuh", step="own_xent", metrics="own_metrics", row="own_row"
    )

    def __post_init__(self) -> None:
        class_loss_formula(self.text)  # raises ConfigError

    @property
    def label(self) -> str:
        """See :class:`Loss`."""
        return self.text

    def functions(self) -> str:
        """See :class:`Loss`."""
        return class_loss_formula(self.text).functions(_FUNCTION)

    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn logits z (m, k) into the gradient of the mean loss; return the mean.

        With u the derivative with respect to the log-softmax, the gradient is
        u - softmax(z) sum(u).
        """
        rows, classes = z.shape
        numbers = memory.once("numbers", lambda: np.arange(classes, dtype=z.dtype)[None])
        onehot = (y[:, None] == np.arange(classes)).astype(z.dtype)
        z -= z.max(axis=1, keepdims=True)
        z -= np.log(np.exp(z).sum(axis=1, keepdims=True))
        values = {"logp": z, "y": onehot, "k": numbers, "classes": z.dtype.type(classes)}
        found = class_loss_formula(self.text)
        of_classes = np.broadcast_to(found.value.evaluate(**values), z.shape)
        loss = float(of_classes.sum(dtype=np.float64)) / len(z)
        u = np.broadcast_to(found.slope.evaluate(**values), z.shape)
        z[...] = (u - np.exp(z) * u.sum(axis=1, keepdims=True)) / rows
        return loss


def own_loss(text: str) -> Loss:
    """Return the loss of a formula, of classes or of numbers. Raises ConfigError."""
    return ClassLoss(text) if is_class_loss(text) else NumberLoss(text)
