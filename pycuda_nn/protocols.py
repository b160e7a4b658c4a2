"""What a backend must do, and what it is given: one call an epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pycuda_nn.network import Network
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
State = dict[str, Array]


@dataclass(frozen=True, kw_only=True)
class SgdHyper:
    """Settings of momentum SGD; the learning rate comes with each step."""

    momentum: float
    nesterov: bool


@dataclass(frozen=True, kw_only=True)
class AdamHyper:
    """Settings of Adam; the learning rate comes with each step."""

    beta1: float
    beta2: float
    eps: float

    def scalars(self, lr: float, t: int) -> tuple[float, float, float, float]:
        """Return (lr_t, beta1, beta2, eps) of step ``t`` from 1; lr_t has both bias corrections.

        The betas are rounded to float32 first: 1 - 0.999f is 1.3e-5 (relative) away from 0.001,
        and the host and a kernel must mean the same number.
        """
        b1, b2 = float(np.float32(self.beta1)), float(np.float32(self.beta2))
        return lr * math.sqrt(1.0 - b2**t) / (1.0 - b1**t), b1, b2, self.eps


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """What a backend does in each step, besides the learning rate."""

    optimizer: SgdHyper | AdamHyper
    batch_size: int
    l2: float
    seed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Rows for the backend: scaled x (n, d) float32; y int32 (n,), or float32 (n, k)."""

    x: Array
    y: Array


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Mean over the rows, without the L2 term.

    Attributes:
        loss: Cross-entropy in nats, or half the squared error summed over the outputs.
        error: Share of rows in a wrong class; for regression the root mean squared error in the
            units of the targets.
    """

    loss: float
    error: float


class Session(ABC):
    """One training on one device.

    Rules (``pycuda_nn.backends.testing.BackendContract`` tests them):

    1. Step ``i`` of an epoch trains on rows ``order[i * b : (i + 1) * b]`` of the training part,
       ``b`` the batch size; the last step takes what is left. The gradient is that of the mean
       loss of the rows plus ``l2 / 2`` times the squared weights, biases left out.
    2. Steps are counted over all epochs from 0 in the state. Dropout is a function of (seed, step,
       layer, element) as ``pycuda_nn.rng`` says; Adam's ``t`` is the step + 1.
    3. ``state`` is plain numpy in float32, with the keys of :meth:`state`; after ``load_state``
       of it, in any backend, training goes on as if never stopped; in the same backend on the same
       machine bit for bit.
    4. ``evaluate`` changes no state and uses no dropout.
    5. ``run_epoch`` gives back the losses once at its end, and needs no host work in between: rows
       are on the device since ``open``; the arguments are two arrays.
    """

    @abstractmethod
    def run_epoch(
        self, order: Array | EpochOrder, learning_rates: Array
    ) -> npt.NDArray[np.float32]:
        """Train one epoch; return the mean loss of each step, without the L2 term.

        Args:
            order: Indices of training rows, each once, or what draws them.
            learning_rates: One for each step, ``ceil(len(order) / batch_size)`` of them.
        """

    @abstractmethod
    def evaluate(self, part: str) -> Metrics:
        """Return loss and error of the part ``train`` or ``valid``, as given to ``open``."""

    @abstractmethod
    def state(self) -> State:
        """Return copies: ``params``, ``step`` (int64, shape ()), and the optimizer's buffers.

        These are ``velocity`` for SGD, ``m`` and ``v`` for Adam, in the layout of ``params``:
        the weights of all layers, then the biases of all layers.
        """

    @abstractmethod
    def load_state(self, state: Mapping[str, Array]) -> None:
        """Go on from ``state``."""

    @abstractmethod
    def params(self) -> npt.NDArray[np.float32]:
        """Return a copy of the parameters only."""

    def close(self) -> None:  # noqa: B027 - most need nothing
        """Give back what the device holds; the session cannot be used again."""


class Backend(ABC):
    """A way to train: finds its device when opened, costs nothing before."""

    name: ClassVar[str]

    def __init__(self, options: Any = None) -> None:  # noqa: B027 - most have none
        """Take the options of this backend; None for its defaults."""

    @classmethod
    def has_device(cls) -> bool:
        """Return whether this machine has the GPU that the backend needs."""
        return False

    @classmethod
    def uncovered(cls, network: Network) -> str | None:
        """Return why it cannot train ``network``, or ``None``; must not touch a device."""
        return None

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return why it cannot be used on this machine, or ``None``; must not touch a device."""

    @abstractmethod
    def open(
        self, network: Network, recipe: TrainingRecipe, parts: Mapping[str, Split], params: Array
    ) -> Session:
        """Put the rows and ``params`` on the device and return a session at step 0."""
