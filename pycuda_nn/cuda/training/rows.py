"""Rows for the device: in GPU memory, or in pinned host memory that kernels read directly."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.errors import OutOfHostMemory
from pycuda_nn.protocols import Split

Array = npt.NDArray[Any]

_LOG = logging.getLogger("pycuda_nn")
_RESERVE_BYTES = 256 << 20  # left free for the driver, graphs and evaluation
_THREADS = 256
_CHUNK_BYTES = 64 << 20  # of float32 rows in a copy


class Rows:
    """The rows of one part in the type of the activations, padded, and their targets.

    Attributes:
        x, y: Addresses that kernels can read.
        resident: Whether the rows are in GPU memory.
    """

    def __init__(
        self,
        memory: Memory,
        module: Module,
        plan: TrainingPlan,
        part: Split,
        stream: cuda.Stream,
        *,
        name: str,
        resident: bool,
    ) -> None:
        """Copy ``part``.

        Raises:
            OutOfDeviceMemory, OutOfHostMemory: There is not enough memory for the rows.
        """
        self.n, self.resident = len(part.x), resident
        self._width = plan.layout.sizes[0]
        self._row_bytes = self._width * plan.precision.item_bytes
        self._module, self._stream, self._plan = module, stream, plan
        self._host: Any = None
        self.x = self._room(memory, name)
        kind = np.int32 if plan.stack.loss.of_classes else np.float32
        targets = np.ascontiguousarray(part.y, dtype=kind)
        self.y = memory.allocate(targets.nbytes, f"the targets of the {name} rows")
        cuda.memcpy_htod(self.y, targets)
        self._fill(memory, part.x)

    def row(self, number: int) -> int:
        """Return the address of a row."""
        return self.x + number * self._row_bytes

    def target(self, number: int) -> int:
        """Return the address of the target of a row."""
        return self.y + 4 * self._plan.target_words() * number

    def close(self) -> None:
        """Free the pinned memory; the :class:`Memory` of the caller frees the rest."""
        if self._host is not None:
            self._host.base.free()
            self._host = None

    def _room(self, memory: Memory, name: str) -> int:
        size = self.n * self._row_bytes
        if self.resident:
            return memory.allocate(size, f"{self.n:,} {name} rows")
        flags = cuda.host_alloc_flags.DEVICEMAP | cuda.host_alloc_flags.PORTABLE
        try:
            self._host = cuda.pagelocked_empty(size, np.uint8, mem_flags=flags)
        except cuda.MemoryError as error:
            raise OutOfHostMemory(f"{self.n:,} {name} rows", size) from error
        return int(self._host.base.get_device_pointer())

    def _fill(self, memory: Memory, x: Array) -> None:
        """Convert the rows on the device, piece by piece."""
        if not len(x):
            return
        columns = x.shape[1]
        step = max(1, _CHUNK_BYTES // (4 * columns))
        size = 4 * columns * min(step, self.n)
        packs = self._width // self._plan.pack
        with memory.borrowed(size, "copying the rows") as staging:
            for start in range(0, self.n, step):
                piece = np.ascontiguousarray(x[start : start + step], dtype=np.float32)
                cuda.memcpy_htod(staging, piece)
                grid = (-(-len(piece) * packs // _THREADS), 1)
                self._module.launch(
                    "convert", grid, _THREADS, self._stream,
                    staging, len(piece), columns, packs, self.row(start),
                )  # fmt: skip
                self._stream.synchronize()


def bytes_of(plan: TrainingPlan, n_rows: int) -> int:
    """Return the bytes of ``n_rows`` rows and their targets."""
    row = plan.layout.sizes[0] * plan.precision.item_bytes + 4 * plan.target_words()
    return n_rows * row


def place_rows(
    memory: Memory,
    module: Module,
    plan: TrainingPlan,
    parts: Mapping[str, Split],
    stream: cuda.Stream,
    options: CudaOptions,
) -> Iterator[tuple[str, Rows]]:
    """Copy the rows to GPU memory if they fit, the smaller part first, else to pinned memory.

    The log names the place of each part.

    Yields:
        Name and rows of each part.
    """
    for name, part in sorted(parts.items(), key=lambda item: len(item[1].x)):
        needed = bytes_of(plan, len(part.x))
        room = memory.available_bytes() - (0 if options.memory_limit else _RESERVE_BYTES)
        resident = needed <= room
        place = "GPU memory" if resident else "pinned host memory, read by the GPU as it trains"
        why = "" if resident else f"; {max(room, 0) / 2**20:,.0f} MiB of GPU memory are free"
        _LOG.info("%s: %s MiB of rows in %s%s", name, f"{needed / 2**20:,.0f}", place, why)
        yield name, Rows(memory, module, plan, part, stream, name=name, resident=resident)
