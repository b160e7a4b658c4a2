"""The order of the rows of each network; the next epoch's is drawn while the host works."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.training.order import DeviceOrder
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
Pairs = dict[int, tuple[int, int]]  # seed and epoch by network


class Orders:
    """Draws or copies the orders of ``count`` networks on ``stream``."""

    def __init__(self, order: DeviceOrder, count: int, stream: cuda.Stream) -> None:
        self._order, self._count, self._stream = order, count, stream
        self._there: Pairs = {}

    def take(self, wanted: Mapping[int, Array | EpochOrder]) -> None:
        """Queue what the next epoch needs: nothing if it was drawn ahead."""
        pairs = {k: (of.seed, of.epoch) for k, of in wanted.items() if isinstance(of, EpochOrder)}
        if not pairs.items() <= self._there.items():
            self.draw(pairs)
        self._there = pairs
        for k, order in wanted.items():
            if not isinstance(order, EpochOrder):
                place = self._order.rows + 4 * k * self._order.slots
                rows = np.ascontiguousarray(order, dtype=np.int32)
                cuda.memcpy_htod_async(place, rows, self._stream)

    def draw_ahead(self) -> None:
        """Queue the orders of the epoch after the one that ended."""
        if self._there:
            self.draw({k: (seed, epoch + 1) for k, (seed, epoch) in self._there.items()})

    def draw(self, pairs: Pairs) -> None:
        """Queue the orders of the networks with this seed and epoch."""
        self._there = pairs
        every = [pairs.get(k, (0, 0)) for k in range(self._count)]
        self._order.draw_many(every, self._stream)
