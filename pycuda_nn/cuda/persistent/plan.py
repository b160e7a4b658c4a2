"""Distribute a small network over the blocks of the persistent kernel; this needs no GPU.

``layout.cuh`` uses the same names and explains them.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.tiles import WARPS, Tiles, block_loads, busiest, round_up, tilings
from pycuda_nn.cuda.stack import DenseStack

_MAX_CHUNK = 128  # rows of the operands of a weight gradient in shared memory
_MAX_FRAGMENTS = 14  # of 16 x 8 weights per warp: 8 registers of a thread each, with velocities
_ROWS = (16, 32, 64, 128)  # rows of a row group: a warp multiplies 16 or 32, up to 4 warps share


@dataclass(frozen=True, kw_only=True)
class KernelPlan:
    """A partition of one training; ``sizes`` are padded."""

    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    batch: int
    row_groups: int
    column_groups: int
    chunk: int
    tiles: tuple[Tiles, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks, which must all be resident."""
        return self.row_groups * self.column_groups

    @property
    def rows(self) -> int:
        """Rows of the minibatch in a row group."""
        return self.batch // self.row_groups

    @property
    def tall(self) -> int:
        """Tiles of 16 rows that a warp multiplies."""
        return 2 if self.rows > 16 else 1

    @property
    def deep(self) -> int:
        """Warps that share the depth of a product."""
        return WARPS // (self.rows // (16 * self.tall))

    @property
    def exchange_words(self) -> int:
        """Size of the three exchange buffers, in words of 4 bytes."""
        sizes, batch = self.sizes, self.batch
        weights = [i * o for i, o in itertools.pairwise(sizes)]
        elements = batch * (sum(sizes[1:-1]) + sum(sizes[1:])) + sum(weights) + sum(weights[1:-1])
        words = elements // 2 + sum(sizes[1:]) + self.row_groups
        return 3 * round_up(words, 64)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        sizes, rows = self.sizes, self.rows
        elements = (
            rows * _lanes(sizes[0]),
            8 if self.chunk < self.batch else self.chunk * _matrix(self.tiles[0].ins),
            self._stage(),
            sizes[-1] * _matrix(sizes[-2]),
            rows * (sizes[-1] + 8),
        )
        words = (
            2 * self.deep * rows * (24 if self.tall == 2 else 40),
            sum(self.share(h) * self.strip(h) for h in range(1, len(sizes) - 1)) * rows // 2,
            2 * sum(tiles.outs for tiles in self.tiles),
            rows,
            2 * self.batch,
            2 * rows,
        )
        return sum(round_up(2 * n, 16) for n in elements) + sum(round_up(4 * n, 16) for n in words)

    def strip(self, hidden: int) -> int:
        """Return the columns of a strip of hidden layer ``hidden`` (from 1) in the passes."""
        size = self.sizes[hidden]
        wide = self.tall == 1 and size % 32 == 0 and size // 16 > self.column_groups
        return 32 if wide else 16

    def share(self, hidden: int) -> int:
        """Return the largest number of such strips of a block."""
        return -(-self.sizes[hidden] // self.strip(hidden) // self.column_groups)

    def _stage(self) -> int:
        """Elements of the buffer for rows of a hidden layer and operands of weight gradients."""
        rows = self.rows * _matrix(max(self.sizes[1:-1]))
        deltas = [self.chunk * _matrix(tiles.outs) for tiles in self.tiles]
        inputs = [self.chunk * _matrix(tiles.ins) for tiles in self.tiles]
        if self.chunk < self.batch:
            return max(rows, 2 * max(map(sum, zip(deltas, inputs, strict=True))))
        return max(rows, sum(deltas)) + sum(inputs[1:])

    def source(self, activation: str, *, nesterov: bool) -> str:
        """Return the definitions at the start of the kernel source."""
        values: dict[str, object] = {
            "LAYERS": len(self.tiles),
            "BATCH": self.batch,
            "ROW_GROUPS": self.row_groups,
            "COLUMN_GROUPS": self.column_groups,
            "CHUNK": self.chunk,
            "SIZES": _listed(self.sizes),
            "WIDTHS": _listed(self.widths),
            "TILE_OUT": _listed([tiles.outs for tiles in self.tiles]),
            "TILE_IN": _listed([tiles.ins for tiles in self.tiles]),
            "FIRST_BLOCK": _listed([tiles.first_block for tiles in self.tiles]),
            "SHARED_BYTES": self.shared_bytes,
            activation.upper(): 1,
        }
        if nesterov:
            values["NESTEROV"] = 1
        return "".join(f"#define PLAN_{name} {value}\n" for name, value in values.items())


def quickest(
    stack: DenseStack, batch: int, multiprocessors: int, shared_bytes: int
) -> KernelPlan | None:
    """Return the fastest partition by the model of :func:`cycles`, or None if none fits."""
    sizes = ParameterLayout(stack.network).sizes
    widest = max(sizes[1:-1]) // 16
    for most in (widest, multiprocessors):  # avoid blocks without a strip in the passes
        plans = [
            plan
            for rows in _ROWS
            if batch % rows == 0
            for groups in _column_groups(widest, min(most, multiprocessors // (batch // rows)))
            if (plan := partition(stack, batch, batch // rows, groups))
            and plan.shared_bytes <= shared_bytes
        ]
        if plans:
            return min(plans, key=cycles)
    return None


def cycles(plan: KernelPlan) -> float:
    """Return the modelled clock cycles of a step, within a third of the measured ones on an H200.

    The model adds the latency of each exchange between blocks, and the bytes and products of a
    block.
    """
    rows, sizes, last = plan.rows, plan.sizes, len(plan.sizes) - 2

    def product(depth: int, columns: int) -> float:
        chunks = -(-depth // (32 * plan.deep))
        return 500 + 45 * plan.tall * chunks * columns / 16 + 2 * depth * columns / 20

    total = 1500.0
    for layer in range(1, last + 1):
        exchanged = 2 * rows * sizes[layer - 1] / 12 * (layer > 1)
        strip = product(sizes[layer - 1], plan.strip(layer)) + exchanged
        total += 1000 + plan.share(layer) * strip
    total += 800 + 2 * rows * sizes[last] / 12 + product(sizes[last], 0) * sizes[-1] / 16
    total += 100 + rows / 16 * sizes[last] / 64 * 200
    for layer in range(1, last):
        strip = product(sizes[layer + 1], plan.strip(layer))
        total += 1500 * (layer + 1 < last) + plan.share(layer) * strip
    return total + 1000 + max(block_loads(plan.tiles, plan.blocks, plan.batch))


def partition(
    stack: DenseStack, batch: int, row_groups: int, column_groups: int
) -> KernelPlan | None:
    """Return the plan with these groups, or None if a matrix has too many tiles."""
    sizes = ParameterLayout(stack.network).sizes
    blocks = row_groups * column_groups
    tiles: dict[int, Tiles] = {}
    layers = list(enumerate(itertools.pairwise(sizes)))
    for layer, (ins, outs) in sorted(layers, key=lambda item: -item[1][0] * item[1][1]):
        loads = block_loads(tiles.values(), blocks, batch)
        places = {0, *((placed.first_block + placed.count) % blocks for placed in tiles.values())}
        choices = [
            dataclasses.replace(tiling, first_block=first)
            for tiling in tilings(ins, outs, blocks)
            for first in places
        ]
        if not choices:
            return None
        tiles[layer] = min(choices, key=lambda choice: busiest(choice, loads, batch))
    if sum(chosen.fragments for chosen in tiles.values()) > _MAX_FRAGMENTS:
        return None
    chunk = max(size for size in range(16, min(batch, _MAX_CHUNK) + 1, 16) if batch % size == 0)
    return KernelPlan(
        sizes=sizes,
        widths=stack.sizes,
        batch=batch,
        row_groups=row_groups,
        column_groups=column_groups,
        chunk=chunk,
        tiles=tuple(tiles[layer] for layer in range(len(tiles))),
    )


def _column_groups(widest: int, most: int) -> list[int]:
    """Return the largest number of groups for each possible number of tiles per group."""
    largest = {-(-widest // groups): groups for groups in range(1, most + 1)}
    return sorted(largest.values())


def _lanes(n: int) -> int:
    """Return the pitch of rows that are read by 16 bytes per lane: 64 bytes apart, modulo 128."""
    return n + (32 - n) % 64


def _matrix(n: int) -> int:
    """Return the pitch of rows that are read as 8 x 8 matrices: an odd multiple of 16 bytes."""
    return n if n // 8 % 2 else n + 8


def _listed(values: object) -> str:
    return ", ".join(map(str, values))  # type: ignore[call-overload]
