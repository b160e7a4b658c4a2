"""Interface of a backend, and its inputs: one call per epoch."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
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
    """Settings of momentum SGD; the learning rate is passed with each step."""

    momentum: float
    nesterov: bool


@dataclass(frozen=True, kw_only=True)
class AdamHyper:
    """Settings of Adam; the learning rate is passed with each step."""

    beta1: float
    beta2: float
    eps: float

    def scalars(self, lr: float, t: int) -> tuple[float, float, float, float]:
        """Return (lr_t, beta1, beta2, eps) of step ``t``, from 1; lr_t has both bias corrections.

        The betas are rounded to float32 first: 1 - 0.999f is 1.3e-5 (relative) away from 0.001,
        and the host and the kernels must use the same number.
        """
        b1, b2 = float(np.float32(self.beta1)), float(np.float32(self.beta2))
        return lr * math.sqrt(1.0 - b2**t) / (1.0 - b1**t), b1, b2, self.eps


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """Settings of every step, except for the learning rate."""

    optimizer: SgdHyper | AdamHyper
    batch_size: int
    l2: float
    seed: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Rows for the backend: x scaled, float32 (n, d); y int32 (n,) or float32 (n, k)."""

    x: Array
    y: Array


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Means over the rows, without the L2 term.

    Example:
        >>> import pycuda_nn as nn
        >>> train, valid, test = nn.split(nn.load_data("digits"))
        >>> model = nn.train(nn.TrainConfig(epochs=5), train).model
        >>> nn.evaluate(model, test).error < 0.2
        True

    Attributes:
        loss: Cross-entropy in nats, or half the squared error summed over the outputs.
        error: Fraction of misclassified rows; for regression the root mean squared error in the
            units of the targets.
    """

    loss: float
    error: float


class Session(ABC):
    """One training on one device.

    Rules (``pycuda_nn.backends.testing.BackendContract`` tests them):

    1. Step ``i`` of an epoch trains on rows ``order[i * b : (i + 1) * b]`` of the training part,
       where ``b`` is the batch size; the last step trains on the remaining rows. The gradient is
       that of the mean loss of the rows plus ``l2 / 2`` times the sum of the squared weights,
       without biases.
    2. The state counts steps over all epochs, from 0. Dropout is a function of (seed, step, layer,
       element), defined in ``pycuda_nn.rng``; Adam's ``t`` is the step + 1.
    3. ``state`` returns plain float32 numpy arrays with the keys of :meth:`state`. After
       ``load_state`` in any backend, training continues as if it had not stopped: bit for bit in
       the same backend on the same machine.
    4. ``evaluate`` does not change the state and does not use dropout.
    5. ``run_epoch`` returns the losses at its end and needs no host work before that: ``open``
       has put the rows on the device, and the arguments are two arrays.
    """

    @abstractmethod
    def run_epoch(
        self, order: Array | EpochOrder, learning_rates: Array
    ) -> npt.NDArray[np.float32]:
        """Train one epoch; return the mean loss of each step, without the L2 term.

        Args:
            order: Index of each training row once, or an :class:`EpochOrder` that draws them.
            learning_rates: Learning rate of each of the ``ceil(len(order) / batch_size)`` steps.
        """

    def expect(self, order: EpochOrder, learning_rates: Array) -> bool:
        """Name the arguments of the epoch after the next one; return whether that is of use.

        If so, the device trains it while the host handles the results of the next one. After the
        next one, only ``evaluate("valid")``, the expected ``run_epoch`` and ``close`` may then be
        called.
        """
        return False

    @abstractmethod
    def evaluate(self, part: str) -> Metrics:
        """Return the loss and error of a part passed to ``open``: ``train`` or ``valid``."""

    @abstractmethod
    def state(self) -> State:
        """Return copies of ``params``, ``step`` (int64, shape ()) and the optimizer's buffers.

        The buffers are ``velocity`` for SGD, ``m`` and ``v`` for Adam, in the layout of
        ``params``: the weights of all layers, then the biases of all layers.
        """

    @abstractmethod
    def load_state(self, state: Mapping[str, Array]) -> None:
        """Continue from ``state``."""

    @abstractmethod
    def params(self) -> npt.NDArray[np.float32]:
        """Return a copy of the parameters."""

    def close(self) -> None:  # noqa: B027 - optional
        """Free the memory on the device; the session can no longer be used."""


class SessionGroup:
    """Several trainings on the same rows; this one runs their epochs one after the other.

    Attributes:
        sessions: One session for each training. Their epochs run through :meth:`run_epochs`.
    """

    def __init__(self, sessions: Sequence[Session]) -> None:
        self.sessions = list(sessions)

    def run_epochs(
        self, inputs: Mapping[int, tuple[Array | EpochOrder, Array]]
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Train one epoch of each session in ``inputs``, by number, which no other one notices.

        Args:
            inputs: The arguments of :meth:`Session.run_epoch`.

        Yields:
            Number of a session and the losses of its steps; it can be evaluated from then on.
        """
        for number, (order, rates) in inputs.items():
            yield number, self.sessions[number].run_epoch(order, rates)

    def close(self) -> None:
        """Close all sessions."""
        while self.sessions:
            self.sessions.pop().close()


class Backend(ABC):
    """Trains on one kind of device; it does not touch the device before :meth:`open`."""

    name: ClassVar[str]

    def __init__(self, options: Any = None) -> None:  # noqa: B027 - optional
        """Store the options of this backend; None for its defaults."""

    @property
    def saves(self) -> bool:
        """Whether this process writes checkpoints: not on other hosts than the first."""
        return True

    @classmethod
    def has_device(cls) -> bool:
        """Return whether this machine has the GPU that the backend needs."""
        return False

    @classmethod
    def uncovered(cls, network: Network) -> str | None:
        """Return why this backend cannot train ``network``, or ``None``.

        It must not touch a device.
        """
        return None

    @classmethod
    @abstractmethod
    def missing(cls) -> str | None:
        """Return why this backend does not work on this machine, or ``None``.

        It must not touch a device.
        """

    @abstractmethod
    def open(
        self, network: Network, recipe: TrainingRecipe, parts: Mapping[str, Split], params: Array
    ) -> Session:
        """Copy the rows and ``params`` to the device and return a session at step 0."""

    def open_many(
        self,
        networks: Sequence[Network],
        recipes: Sequence[TrainingRecipe],
        parts: Mapping[str, Split],
        params: Sequence[Array],
    ) -> SessionGroup:
        """Return a session at step 0 for each network, all on the same rows."""
        group = SessionGroup([])
        try:
            for network, recipe, values in zip(networks, recipes, params, strict=True):
                group.sessions.append(self.open(network, recipe, parts, values))
        except BaseException:
            group.close()
            raise
        return group
