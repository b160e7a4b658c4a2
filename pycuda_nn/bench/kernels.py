"""Measure the bandwidth of each elementwise kernel and of a device copy of the same size."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.bench.machine import describe
from pycuda_nn.bench.tables import MIB, KernelReport, KernelRow
from pycuda_nn.bench.timing import Call, on_device
from pycuda_nn.cuda.elementwise.kernel import Elementwise, Kernel
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.graph import Graph

_ARENA_BYTES = 4 << 30  # successive launches use other parts of it: no data is in the L2 cache
_LAUNCHES = 512  # most launches of a graph
_REPEATS = 7
_SCALARS = {"c": 1.25, "level": 0.75, "value": 0.5}


def measure(
    device: Device,
    sizes_mib: Sequence[int],
    operations: Collection[str],
    say: Callable[[str], None],
) -> KernelReport:
    """Time ``operations`` in and out of place; the context of ``device`` must be active.

    Each launch of a graph has its own arrays, and the GPU measures the times: they include neither
    cached data nor Python.

    Args:
        sizes_mib: Sizes of an array.
        operations: Names in :data:`~pycuda_nn.cuda.elementwise.single.SINGLE`.
        say: Called with a progress line before each measurement.

    Raises:
        OutOfDeviceMemory: Three of the largest arrays do not fit.
    """
    memory = Memory(device)
    room = max(3 * MIB * max(sizes_mib), min(_ARENA_BYTES, memory.available_bytes() // 2))
    bench = _Bench(device, memory.allocate(room, "the arrays of the benchmark"), room)
    rows: list[KernelRow] = []
    try:
        for mib in sizes_mib:
            copies = {moved: bench.copy_gb_s(mib * MIB * moved // 2) for moved in (2, 3)}
            for name in operations:
                say(f"kernels: {name}, {mib} MiB")
                rows += bench.rows(name, mib * MIB, copies)
    finally:
        bench.stream.synchronize()
        memory.free()
    return KernelReport(machine=describe(device), rows=tuple(rows))


class _Bench:
    """An arena of device memory; each launch uses another part of it."""

    def __init__(self, device: Device, arena: int, room: int) -> None:
        self.stream = cuda.Stream()
        self._family = Elementwise(device)
        self._arena, self._room = arena, room
        self._values = np.random.default_rng(0).uniform(0.5, 1.0, MIB // 4).astype(np.float32)

    def copy_gb_s(self, n_bytes: int) -> float:
        """Return the bandwidth of copies of ``n_bytes``: the faster of calls and a graph."""
        slots = self._slots(2 * n_bytes)
        calls = [
            functools.partial(cuda.memcpy_dtod_async, first + n_bytes, first, n_bytes, self.stream)
            for first in slots
        ]
        called = on_device(self.stream, lambda: _all(calls), self._fill, _REPEATS)
        seconds = min(called, self._replayed(calls))
        return 2 * n_bytes * len(slots) / seconds / 1e9

    def rows(self, name: str, array_bytes: int, copies: dict[int, float]) -> list[KernelRow]:
        """Return the result in place and the result out of place.

        Args:
            copies: Bandwidth of the copy, by the number of arrays that are read and written.
        """
        kernel, rows = self._family.single(name), []
        moved = 1 + len(kernel.program.inputs)
        for in_place in (True, False):
            calls = self._launches(kernel, array_bytes, in_place)
            row = KernelRow(
                operation=name,
                array_bytes=array_bytes,
                in_place=in_place,
                gb_s=moved * array_bytes * len(calls) / self._replayed(calls) / 1e9,
                copy_gb_s=copies[moved],
            )
            rows.append(row)
        return rows

    def _launches(self, kernel: Kernel, array_bytes: int, in_place: bool) -> list[Call]:
        inputs, calls = len(kernel.program.inputs), []
        numbers = kernel.program.numbers(_SCALARS)
        for first in self._slots((inputs if in_place else inputs + 1) * array_bytes):
            places = [first + k * array_bytes for k in range(inputs)]
            out = first if in_place else first + inputs * array_bytes
            calls.append(kernel.bind(out, places, array_bytes // 4, numbers, self.stream))
        return calls

    def _replayed(self, calls: Sequence[Call]) -> float:
        graph = Graph(self.stream, lambda: _all(calls))
        try:
            return on_device(self.stream, graph.launch, self._fill, _REPEATS)
        finally:
            self.stream.synchronize()
            graph.close()

    def _slots(self, n_bytes: int) -> range:
        """Return the addresses of slots of ``n_bytes``."""
        n = max(1, min(_LAUNCHES, self._room // n_bytes))
        return range(self._arena, self._arena + n * n_bytes, n_bytes)

    def _fill(self) -> None:
        """Fill the arena with values from 0.5 to 1: repeated in-place operations diverge."""
        cuda.memcpy_htod(self._arena, self._values)
        filled = self._values.nbytes
        while filled < self._room:
            more = min(filled, self._room - filled)
            cuda.memcpy_dtod_async(self._arena + filled, self._arena, more, self.stream)
            filled += more


def _all(calls: Sequence[Call]) -> None:
    for call in calls:
        call()
