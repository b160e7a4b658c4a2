"""Bytes a second of every elementwise kernel, beside a copy on the device of as many bytes."""

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

_ARENA_BYTES = 4 << 30  # launches walk through it, so that the L2 cache has none of their data
_LAUNCHES = 512  # most of one graph
_REPEATS = 7
_SCALARS = {"c": 1.25, "level": 0.75, "value": 0.5}


def measure(
    device: Device,
    sizes_mib: Sequence[int],
    operations: Collection[str],
    say: Callable[[str], None],
) -> KernelReport:
    """Time ``operations`` in and out of place; the context of ``device`` is active.

    Each launch of a graph has arrays of its own, and the times are the GPU's: neither the cache nor
    Python is in them.

    Args:
        sizes_mib: Of each array.
        operations: Of :data:`~pycuda_nn.cuda.elementwise.expression.SINGLE`.
        say: Given a line about what is measured now.

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
    """An arena of device memory, and launches that walk through it."""

    def __init__(self, device: Device, arena: int, room: int) -> None:
        self.stream = cuda.Stream()
        self._family = Elementwise(device)
        self._arena, self._room = arena, room
        self._values = np.random.default_rng(0).uniform(0.5, 1.0, MIB // 4).astype(np.float32)

    def copy_gb_s(self, n_bytes: int) -> float:
        """Return the bandwidth of copies of ``n_bytes``, by calls or by a graph, the faster."""
        slots = self._slots(2 * n_bytes)
        calls = [
            functools.partial(cuda.memcpy_dtod_async, first + n_bytes, first, n_bytes, self.stream)
            for first in slots
        ]
        called = on_device(self.stream, lambda: _all(calls), self._fill, _REPEATS)
        seconds = min(called, self._replayed(calls))
        return 2 * n_bytes * len(slots) / seconds / 1e9

    def rows(self, name: str, array_bytes: int, copies: dict[int, float]) -> list[KernelRow]:
        """Return the row in place and the row out of place.

        Args:
            copies: Bandwidth of the copy, by the number of arrays read and written.
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
        """Return addresses of places of ``n_bytes``."""
        n = max(1, min(_LAUNCHES, self._room // n_bytes))
        return range(self._arena, self._arena + n * n_bytes, n_bytes)

    def _fill(self) -> None:
        """Put values from 0.5 to 1 everywhere: those computed in place again and again run away."""
        cuda.memcpy_htod(self._arena, self._values)
        filled = self._values.nbytes
        while filled < self._room:
            more = min(filled, self._room - filled)
            cuda.memcpy_dtod_async(self._arena + filled, self._arena, more, self.stream)
            filled += more


def _all(calls: Sequence[Call]) -> None:
    for call in calls:
        call()
