"""Parameters and moments on the device, and their conversion from and to a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.layout import PaddedDense, ParameterLayout
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.errors import CheckpointError
from pycuda_nn.protocols import AdamHyper, SgdHyper, State, TrainingRecipe

Array = npt.NDArray[Any]
MOMENTUM, NESTEROV, ADAM = 0, 1, 2  # OPTIMIZER of update.cuh
WHOLE, SPLIT, FLOAT = 0, 1, 2  # MASTER of update.cuh


def optimizer_number(recipe: TrainingRecipe) -> int:
    """Return OPTIMIZER of update.cuh."""
    if isinstance(recipe.optimizer, AdamHyper):
        return ADAM
    return NESTEROV if recipe.optimizer.nesterov else MOMENTUM


@dataclass(frozen=True, kw_only=True)
class GradientTarget:
    """Result of the product of a weight gradient.

    Attributes:
        address: Where the product writes.
        beta: Factor of the old values.
        wide: Whether it is float32 in all precisions.
    """

    address: int
    beta: float = 0.0
    wide: bool = True


class Weights:
    """Addresses of the parameters, all in the layout of :class:`ParameterLayout`.

    Attributes:
        values: Parameters in the type of the activations; float32 for float32 and tf32.
        master: The part of the float32 weights that ``values`` lacks: 16 bits each (``SPLIT``),
            complete float32 weights (``FLOAT``), or nothing (``WHOLE``).
        first, second: Moments, float32: velocity, or m and v of Adam.
        grad: Gradient of the weights, float32, if the product cannot write the velocity.
        copies: Number of copies of ``values``.
        side: The copy that an evaluation reads.
    """

    copies = 1
    side = 0

    def __init__(
        self,
        memory: Memory,
        layout: ParameterLayout,
        recipe: TrainingRecipe,
        precision: Precision,
        *,
        split: bool,
        gradient: bool = False,
    ) -> None:
        """Allocate the memory.

        Args:
            split: Whether a bf16 weight is stored in two halves.
            gradient: Whether products write gradients and never the velocity.
        """
        self._layout, self._precision = layout, precision
        n, what = layout.n_params, "the parameters"
        self.n_params = n
        self.optimizer = optimizer_number(recipe)
        self.values = memory.allocate(n * precision.item_bytes, what)
        self.master_kind = WHOLE
        if precision.item_bytes == 2:
            self.master_kind = SPLIT if split and precision.split else FLOAT
        sizes = {WHOLE: 0, SPLIT: 2 * n, FLOAT: 4 * n}
        size = sizes[self.master_kind]
        self.master = memory.allocate(size, what) if size else 0
        names = ("m", "v") if self.optimizer == ADAM else ("velocity",)
        self._moments = {name: memory.allocate(4 * n, "the moments") for name in names}
        self.first, self.second = (*self._moments.values(), 0)[:2]
        self.grad = 0
        if gradient or self.optimizer != MOMENTUM:
            self.grad = memory.allocate(4 * layout.n_weights, "the gradient")

    def value(self, offset: int, side: int | None = None) -> int:
        """Return the address of element ``offset`` of ``values``, of which there is one copy."""
        return self.values + self._precision.item_bytes * offset

    def gradient(self, layer: PaddedDense, momentum: float) -> GradientTarget:
        """Return where the product of a layer writes: to the velocity if it can."""
        if self.grad:
            return GradientTarget(address=self.grad + 4 * layer.weights)
        return GradientTarget(address=self.first + 4 * layer.weights, beta=momentum)

    def master_at(self, offset: int) -> int:
        """Return the address of element ``offset`` of ``master``, 0 without a master."""
        return self.master and self.master + (2 if self.master_kind == SPLIT else 4) * offset

    def load(self, state: Mapping[str, Array]) -> None:
        """Load parameters and moments from ``state``.

        Raises:
            CheckpointError: The state is of another network or optimizer.
        """
        check_state(state, self._moments, self._layout)
        self.load_params(state["params"])
        for name, address in self._moments.items():
            cuda.memcpy_htod(address, self._layout.spread(state[name]))

    def load_params(self, params: Array) -> None:
        """Load the parameters."""
        wide = self._layout.spread(params)
        cuda.memcpy_htod(self.values, self._precision.rounded(wide))
        if self.master_kind == SPLIT:
            cuda.memcpy_htod(self.master, self._precision.low_bits(wide))
        elif self.master_kind == FLOAT:
            cuda.memcpy_htod(self.master, wide)

    def clear_moments(self) -> None:
        """Set the moments to zero, as before the first step."""
        for address in self._moments.values():
            cuda.memset_d8(address, 0, 4 * self._layout.n_params)

    def params(self) -> npt.NDArray[np.float32]:
        """Return the float32 parameters in the layout of a state."""
        n = self._layout.n_params
        if self.master_kind == SPLIT:
            high = fetch(self.values, n, np.uint16)
            wide = self._precision.joined(high, fetch(self.master, n, np.uint16))
        else:
            wide = fetch(self.master or self.values, n, np.float32)
        return self._layout.compact(wide)

    def moments(self) -> State:
        """Return the moments by name, in the layout of a state."""
        n = self._layout.n_params
        return {
            name: self._layout.compact(fetch(address, n, np.float32))
            for name, address in self._moments.items()
        }


def hyper_scalars(recipe: TrainingRecipe) -> dict[str, float]:
    """Return the constants of an update: ``momentum`` (or beta1), ``beta2``, ``eps``, ``l2``."""
    if isinstance(recipe.optimizer, SgdHyper):
        return {"momentum": recipe.optimizer.momentum, "beta2": 0.0, "eps": 0.0, "l2": recipe.l2}
    _, b1, b2, eps = recipe.optimizer.scalars(0.0, 1)
    return {"momentum": b1, "beta2": b2, "eps": eps, "l2": recipe.l2}


def rates_of(
    recipe: TrainingRecipe, learning_rates: Array, first_step: int
) -> npt.NDArray[np.float32]:
    """Return the factor of each step; for Adam with both bias corrections.

    Args:
        recipe: Recipe with the optimizer.
        learning_rates: Learning rate of each step.
        first_step: Number of earlier steps over all epochs.
    """
    if isinstance(recipe.optimizer, SgdHyper):
        return learning_rates.astype(np.float32)
    _, b1, b2, _ = recipe.optimizer.scalars(0.0, 1)
    t = first_step + 1.0 + np.arange(len(learning_rates))
    rates: Array = learning_rates * np.sqrt(1.0 - b2**t) / (1.0 - b1**t)
    return rates.astype(np.float32)


def check_state(
    state: Mapping[str, Array], moments: Iterable[str], layout: ParameterLayout
) -> None:
    """Raise CheckpointError if ``state`` is of another network or optimizer."""
    size = layout.network.n_params
    for name in ("params", *moments):
        if name not in state or state[name].shape != (size,):
            raise CheckpointError(f"state '{name}' does not fit this network")


def fetch(address: int, n: int, kind: Any) -> Array:
    """Return ``n`` numbers of type ``kind`` from the device."""
    out = np.empty(n, dtype=kind)
    if n:
        cuda.memcpy_dtoh(out, address)
    return out
