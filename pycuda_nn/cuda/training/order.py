"""Draw and sort the order of an epoch on the device."""

from __future__ import annotations

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.rng import EpochOrder, Purpose

_TILE = 2048  # as in order.cuh
_THREADS = 256


class DeviceOrder:
    """Memory for the order of ``n`` rows.

    Attributes:
        rows: Address of int32 row numbers; only the first ``n`` are valid.
    """

    def __init__(self, memory: Memory, module: Module, n: int) -> None:
        self._module, self._n = module, n
        self._slots = max(4, 1 << (n - 1).bit_length())
        self._words = memory.allocate(8 * self._slots, "the order of the rows")
        self.rows = memory.allocate(4 * self._slots, "the order of the rows")

    def draw(self, order: EpochOrder, stream: cuda.Stream) -> None:
        """Queue the computation of the order of an epoch, without waiting for it."""
        slots, pointers = self._slots, (self._words, self.rows)
        self._module.launch(
            "draw", (_grid(slots // 4), 1), _THREADS, stream,
            *pointers, self._n, slots, order.seed, int(Purpose.ORDER), order.epoch,
        )  # fmt: skip
        tiles = (max(1, slots // _TILE), 1)
        self._module.launch(
            "merge_tile", tiles, _TILE // 2, stream, *pointers, slots, 2, min(_TILE, slots)
        )
        run = 2 * _TILE
        while run <= slots:
            distance = run // 2
            while distance >= _TILE:
                grid = (_grid(slots // 2), 1)
                self._module.launch(
                    "merge_pass", grid, _THREADS, stream, *pointers, slots, run, distance
                )
                distance //= 2
            self._module.launch("merge_tile", tiles, _TILE // 2, stream, *pointers, slots, run, run)
            run *= 2


def _grid(threads: int) -> int:
    return -(-threads // _THREADS)
