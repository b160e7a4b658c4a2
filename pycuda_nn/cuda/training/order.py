"""Draw and sort the order of an epoch on the device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.rng import Purpose

TILE, APART = 2048, 8  # as in order.cuh
SORT_THREADS, SCAN_THREADS = 256, 1024
DRAWN_BYTES = 16  # of a network: seed and epoch, uint64
_BUCKET = 896  # mean rows; 1024, four standard deviations more, are sorted in half the time of 2048
_THREADS = 256


def buckets_of(n: int) -> int:
    """Return into how many buckets ``n`` rows are divided."""
    return 1 if n <= TILE else -(-n // _BUCKET)


class DeviceOrder:
    """Memory for the order of ``n`` rows, of ``count`` networks, and the graph that draws it.

    Attributes:
        rows: Address of int32 row numbers; only the first ``n`` of each network are valid.
        slots: Distance of the orders of two networks.
        drawn: Address of seed and epoch of each network.
    """

    def __init__(
        self, memory: Memory, module: Module, n: int, count: int = 1, *, drawn: int = 0
    ) -> None:
        """Allocate the memory; ``drawn`` is an address that the caller fills."""
        self._module, self._n, self._count = module, n, count
        self._buckets, self.slots = buckets_of(n), -(-n // 4) * 4
        what = "the order of the rows"
        self.drawn = drawn or memory.allocate(DRAWN_BYTES * count, what)
        self.rows = memory.allocate(4 * count * self.slots, what)
        self._unsorted = self._places = 0
        if self._buckets > 1:
            self._unsorted = memory.allocate(4 * count * self.slots, what)
            self._places = memory.allocate(4 * count * self._buckets * APART, what)
        self._graph: Graph | None = None

    def draw(self, stream: cuda.Stream) -> None:
        """Queue the computation of the orders, without waiting for it: one launch."""
        if self._graph is None:
            self._graph = Graph(stream, lambda: self._record(stream))
        self._graph.launch(stream)

    def draw_many(self, orders: Sequence[tuple[int, int]], stream: cuda.Stream) -> None:
        """Queue the orders of (seed, epoch) of each network."""
        cuda.memcpy_htod_async(self.drawn, np.array(orders, dtype=np.uint64), stream)
        self.draw(stream)

    def close(self) -> None:
        """Discard the graph."""
        graph, self._graph = self._graph, None
        if graph is not None:
            graph.close()

    def _record(self, stream: cuda.Stream) -> None:
        launch, n, buckets, count = self._module.launch, self._n, self._buckets, self._count
        drawn = (self.drawn, int(Purpose.ORDER), n, buckets)
        if buckets > 1:
            grid = (-(-n // (4 * _THREADS)), 1, count)
            cuda.memset_d32_async(self._places, 0, count * buckets * APART, stream)
            launch("count_rows", grid, _THREADS, stream, self._places, *drawn)
            launch("scan_buckets", (1, 1, count), SCAN_THREADS, stream, self._places, buckets)
            launch(
                "scatter_rows", grid, _THREADS, stream,
                self._places, self._unsorted, *drawn, self.slots,
            )  # fmt: skip
        launch(
            "sort_rows", (buckets, 1, count), SORT_THREADS, stream,
            self._places, self._unsorted, self.rows, *drawn, self.slots,
        )  # fmt: skip
