"""Base class of losses: the last step of a network, which turns outputs into their gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.base import Array, Described
from pycuda_nn.layers.memory import Memory


@dataclass(frozen=True, kw_only=True)
class LossKernels:
    """Kernels of a loss for the captured step.

    Attributes:
        source: Path of the .cuh file, relative to ``pycuda_nn``.
        step: Kernel of a training step; it turns float32 outputs without bias into their gradient.
        metrics: Kernel of an evaluation; it sums losses and errors.
        row: Device function of the loss of a row, for kernels that train a whole small network;
            None if there is none.
    """

    source: str
    step: str
    metrics: str
    row: str | None = None


class Loss(Described, ABC):
    """A loss; a subclass must be a frozen dataclass.

    Attributes:
        name: Name in the settings.
        kernels: GPU kernels; None if only numpy can train it.
        of_classes: Whether targets are class numbers, int32 (rows,); else float (rows, outputs).
    """

    name: ClassVar[str]
    kernels: ClassVar[LossKernels | None] = None
    of_classes: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """Name in messages; the text of a formula."""
        return self.name

    def functions(self) -> str:
        """Return the CUDA source of functions that the kernels call; none by default."""
        return ""

    @abstractmethod
    def fits(self, classes: int) -> bool:
        """Return whether the loss can train on ``classes`` classes; 0 means real targets."""

    @abstractmethod
    def outputs(self, classes: int, targets: int) -> int:
        """Return the number of outputs for ``classes`` classes, or for ``targets`` per row."""

    @abstractmethod
    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn outputs z (rows, outputs) into the gradient of the mean loss; return the mean."""

    def wrong(self, z: Array, y: Array) -> float:
        """Return the number of rows in a wrong class, or the sum of squared errors."""
        return float(np.count_nonzero(z.argmax(axis=1) != y))

    def error(self, wrong: float, rows: int, outputs: int) -> float:
        """Return the error of ``rows`` rows from the sum of :meth:`wrong`."""
        return wrong / rows

    def logits(self, z: Array) -> Array:
        """Return one logit per class; their softmax is the probabilities."""
        return z
