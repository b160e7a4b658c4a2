"""Draw and sort the order of an epoch on the device."""

from __future__ import annotations

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.rng import EpochOrder, Purpose

_TILE = 2048  # as in order.cuh
_THREADS = 256


class DeviceOrder:
    """Memory for the order of ``n`` rows, of ``count`` networks.

    Attributes:
        rows: Address of int32 row numbers; only the first ``n`` of each network are valid.
        slots: Distance of the orders of two networks.
    """

    def __init__(self, memory: Memory, module: Module, n: int, count: int = 1) -> None:
        self._module, self._n, self._count = module, n, count
        self.slots = max(4, 1 << (n - 1).bit_length())
        self._words = memory.allocate(8 * count * self.slots, "the order of the rows")
        self.rows = memory.allocate(4 * count * self.slots, "the order of the rows")

    def draw(self, order: EpochOrder, stream: cuda.Stream) -> None:
        """Queue the computation of the order of an epoch, without waiting for it."""
        self._module.launch(
            "draw", (_grid(self.slots // 4), 1), _THREADS, stream,
            self._words, self.rows, self._n, self.slots,
            order.seed, int(Purpose.ORDER), order.epoch,
        )  # fmt: skip
        self._sort(stream)

    def draw_many(self, drawn: int, stream: cuda.Stream) -> None:
        """Queue the orders of many networks; ``drawn`` is the address of (seed, epoch) of each."""
        grid = (_grid(self.slots // 4), 1, self._count)
        self._module.launch(
            "draw_many", grid, _THREADS, stream,
            self._words, self.rows, self._n, self.slots, drawn, int(Purpose.ORDER),
        )  # fmt: skip
        self._sort(stream)

    def _sort(self, stream: cuda.Stream) -> None:
        slots, pointers = self.slots, (self._words, self.rows)
        tiles = (max(1, slots // _TILE), 1, self._count)
        self._module.launch(
            "merge_tile", tiles, _TILE // 2, stream, *pointers, slots, 2, min(_TILE, slots)
        )
        run = 2 * _TILE
        while run <= slots:
            distance = run // 2
            while distance >= _TILE:
                grid = (_grid(slots // 2), 1, self._count)
                self._module.launch(
                    "merge_pass", grid, _THREADS, stream, *pointers, slots, run, distance
                )
                distance //= 2
            self._module.launch("merge_tile", tiles, _TILE // 2, stream, *pointers, slots, run, run)
            run *= 2


def _grid(threads: int) -> int:
    return -(-threads // _THREADS)
