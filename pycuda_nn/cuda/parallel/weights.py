"""Parameters of one rank: two copies of all weights, master and moments of its shard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.parallel.shards import Piece, Shards
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.weights import (
    ADAM,
    FLOAT,
    SPLIT,
    WHOLE,
    GradientTarget,
    Weights,
    check_state,
    fetch,
    optimizer_number,
)  # fmt: skip

Array = npt.NDArray[Any]
Pieces = list[tuple[int, Array]]

_ALIGN = 512


class SharedWeights(Weights):
    """As :class:`Weights`; a step reads one copy of ``values`` and its exchanges write the other.

    Attributes:
        arena: Memory that the other ranks read and write.
        gradients: Place of the gradients in the arena, in bytes.
        extra: Place of the rest of the arena, for the exchange.
    """

    copies = 2

    def __init__(
        self, memory: Memory, plan: TrainingPlan, shards: Shards, extra_bytes: int, *, exact: bool
    ) -> None:
        """Allocate the memory; ``exact`` gradients are float32 in all precisions."""
        self._layout, self._precision = plan.layout, plan.precision
        self._shards = shards
        n = self.n_params = plan.layout.n_params
        item, what = plan.precision.item_bytes, "the parameters"
        self.optimizer = optimizer_number(plan.recipe)
        self.float_gradients = exact or not plan.precision.split
        self.gradient_bytes = 4 if self.float_gradients else item
        copy = _aligned(n * item)
        self.gradients = 2 * copy
        self.extra = self.gradients + _aligned(self.gradient_bytes * plan.layout.n_weights)
        self.arena = memory.allocate(self.extra + extra_bytes, what)
        self.places = (0, copy)  # of the copies in the arena
        self.values = self.arena
        self.master_kind = WHOLE if item == 4 else SPLIT if plan.precision.split else FLOAT
        self._master_bytes = {WHOLE: 0, SPLIT: 2, FLOAT: 4}[self.master_kind]
        size = self._master_bytes * shards.count
        self.master = memory.allocate(size, what) if size else 0
        names = ("m", "v") if self.optimizer == ADAM else ("velocity",)
        self._moments = {name: memory.allocate(4 * shards.count, "the moments") for name in names}
        self.first, self.second = (*self._moments.values(), 0)[:2]
        self.grad = self.arena + self.gradients

    def value(self, offset: int, side: int | None = None) -> int:
        """Return the address of element ``offset`` in a copy, by default in the current one."""
        copy = self.places[self.side if side is None else side]
        return self.arena + copy + self._precision.item_bytes * offset

    def gradient(self, layer: PaddedDense, momentum: float) -> GradientTarget:
        """See :class:`Weights`."""
        address = self.grad + self.gradient_bytes * layer.weights
        return GradientTarget(address=address, wide=self.float_gradients)

    def shard(self, piece: Piece, begin: int) -> dict[str, int]:
        """Return master and moments, so that an index from ``begin`` in the layout finds them."""
        at = piece.shift + begin
        return {
            "master": self.master and self.master + self._master_bytes * at,
            "first": self.first + 4 * at,
            "second": self.second and self.second + 4 * at,
        }

    def load(self, state: Mapping[str, Array]) -> None:
        """See :class:`Weights`."""
        check_state(state, self._moments, self._layout)
        self.load_params(state["params"])
        for name, address in self._moments.items():
            wide = self._layout.spread(state[name])
            for piece in self._shards.pieces:
                _put(address + 4 * piece.at, wide[piece.start : piece.stop])

    def load_params(self, params: Array) -> None:
        """Load the parameters into both copies and the master of the shard."""
        wide = self._layout.spread(params)
        for side in range(self.copies):
            cuda.memcpy_htod(self.value(0, side), self._precision.rounded(wide))
        if not self.master:
            return
        rest = self._precision.low_bits(wide) if self.master_kind == SPLIT else wide
        for piece in self._shards.pieces:
            _put(self.master + self._master_bytes * piece.at, rest[piece.start : piece.stop])

    def clear_moments(self) -> None:
        """See :class:`Weights`."""
        for address in self._moments.values():
            cuda.memset_d8(address, 0, 4 * self._shards.count)

    def parts(self) -> dict[str, Pieces]:
        """Return the float32 parameters and the moments of the shard: first place and values."""
        moments = {
            name: [
                (piece.start, fetch(address + 4 * piece.at, piece.stop - piece.start, np.float32))
                for piece in self._shards.pieces
            ]
            for name, address in self._moments.items()
        }
        params = [(piece.start, self._exact(piece)) for piece in self._shards.pieces]
        return {"params": params, **moments}

    def _exact(self, piece: Piece) -> Array:
        n, at = piece.stop - piece.start, self.master + self._master_bytes * piece.at
        if self.master_kind == SPLIT:
            high = fetch(self.value(piece.start), n, np.uint16)
            return self._precision.joined(high, fetch(at, n, np.uint16))
        return fetch(at if self.master else self.value(piece.start), n, np.float32)

    def copy_bits(self) -> Array:
        """Return the bytes of the current copy, which are the same on all ranks."""
        return fetch(self.value(0), self.n_params * self._precision.item_bytes, np.uint8)


def _aligned(n_bytes: int) -> int:
    return -(-n_bytes // _ALIGN) * _ALIGN


def _put(address: int, values: Array) -> None:
    if len(values):
        cuda.memcpy_htod(address, np.ascontiguousarray(values))
