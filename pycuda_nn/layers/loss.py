"""What a loss is: the last step of a network, which turns outputs into their gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.layers.base import Array, Described
from pycuda_nn.layers.memory import Memory


@dataclass(frozen=True, kw_only=True)
class LossKernels:
    """What the captured step launches for a loss.

    Attributes:
        source: The .cuh file, a path in ``pycuda_nn``.
        step: Kernel of a training step: float32 outputs without bias to their gradient.
        metrics: Kernel of an evaluation: sums of losses and errors.
    """

    source: str
    step: str
    metrics: str


class Loss(Described, ABC):
    """A loss; make a subclass a frozen dataclass.

    Attributes:
        name: In the settings and in messages.
        kernels: On a GPU; None where it has none, so that only numpy trains it.
        of_classes: Whether targets are class numbers, int32 (rows,); else float (rows, outputs).
    """

    name: ClassVar[str]
    kernels: ClassVar[LossKernels | None] = None
    of_classes: ClassVar[bool] = True

    @abstractmethod
    def fits(self, classes: int) -> bool:
        """Return whether it can train on so many classes; 0 for real targets."""

    @abstractmethod
    def outputs(self, classes: int, targets: int) -> int:
        """Return how many outputs a network needs for so many classes, or targets a row."""

    @abstractmethod
    def gradient(self, z: Array, y: Array, memory: Memory) -> float:
        """Turn outputs z (rows, outputs) into the gradient of the mean loss; return that mean."""

    def wrong(self, z: Array, y: Array) -> float:
        """Return the number of rows in a wrong class, or the sum of squared errors."""
        return float(np.count_nonzero(z.argmax(axis=1) != y))

    def error(self, wrong: float, rows: int, outputs: int) -> float:
        """Return the error of ``rows`` rows from the sum of :meth:`wrong`."""
        return wrong / rows

    def logits(self, z: Array) -> Array:
        """Return one logit a class, of which the softmax is the probabilities."""
        return z
