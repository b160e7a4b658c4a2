"""How the persistent kernel shares a small network among the blocks; pure arithmetic, no GPU.

The names are those of ``layout.cuh`` beside this file, which says what they mean.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.tiles import WARPS, Tiles, block_loads, busiest, round_up, tilings
from pycuda_nn.cuda.stack import DenseStack

_MAX_CHUNK = 128  # rows of a weight gradient's operands that are in shared memory at once
_MAX_FRAGMENTS = 14  # of 16 x 8 weights in a thread's registers, master and velocity: 8 each
_ROWS = (16, 32, 64, 128)  # of a row group: a warp multiplies 16 or 32, up to 4 warps beside it


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
        """How many blocks must be resident at once."""
        return self.row_groups * self.column_groups

    @property
    def rows(self) -> int:
        """Rows of the minibatch of a row group."""
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
        """Words of 4 bytes of the three buffers in which blocks exchange results."""
        sizes, batch = self.sizes, self.batch
        weights = [i * o for i, o in itertools.pairwise(sizes)]
        elements = batch * (sum(sizes[1:-1]) + sum(sizes[1:])) + sum(weights) + sum(weights[1:-1])
        words = elements // 2 + sum(sizes[1:]) + self.row_groups
        return 3 * round_up(words, 64)

    @property
    def shared_bytes(self) -> int:
        """Of one block."""
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
        """Columns of hidden layer ``hidden`` (from 1) that a block makes at once in the passes."""
        size = self.sizes[hidden]
        wide = self.tall == 1 and size % 32 == 0 and size // 16 > self.column_groups
        return 32 if wide else 16

    def share(self, hidden: int) -> int:
        """How many such strips a block may have."""
        return -(-self.sizes[hidden] // self.strip(hidden) // self.column_groups)

    def _stage(self) -> int:
        """Elements of the rows of a hidden layer, then of the weight gradients' operands."""
        rows = self.rows * _matrix(max(self.sizes[1:-1]))
        deltas = [self.chunk * _matrix(tiles.outs) for tiles in self.tiles]
        inputs = [self.chunk * _matrix(tiles.ins) for tiles in self.tiles]
        if self.chunk < self.batch:
            return max(rows, 2 * max(map(sum, zip(deltas, inputs, strict=True))))
        return max(rows, sum(deltas)) + sum(inputs[1:])

    def source(self, activation: str, *, nesterov: bool) -> str:
        """Return the definitions that the kernel's source begins with."""
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
    """Return the quickest partition on such a GPU by the model of :func:`cycles`, if any fits."""
    sizes = ParameterLayout(stack.network).sizes
    widest = max(sizes[1:-1]) // 16
    for most in (widest, multiprocessors):  # rather no blocks that have no strip in the passes
        plans = [
            one
            for rows in _ROWS
            if batch % rows == 0
            for groups in _column_groups(widest, min(most, multiprocessors // (batch // rows)))
            if (one := partition(stack, batch, batch // rows, groups))
            and one.shared_bytes <= shared_bytes
        ]
        if plans:
            return min(plans, key=cycles)
    return None


def cycles(plan: KernelPlan) -> float:
    """Return a model of a step's clock cycles, within a third of those measured on an H200.

    Each exchange between blocks costs its latency; then a block's bytes and products.
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
    """Return the plan with these groups, or None where a matrix has too many tiles."""
    sizes = ParameterLayout(stack.network).sizes
    blocks = row_groups * column_groups
    tiles: dict[int, Tiles] = {}
    layers = list(enumerate(itertools.pairwise(sizes)))
    for layer, (ins, outs) in sorted(layers, key=lambda one: -one[1][0] * one[1][1]):
        loads = block_loads(tiles.values(), blocks, batch)
        places = {0, *((one.first_block + one.count) % blocks for one in tiles.values())}
        choices = [
            dataclasses.replace(one, first_block=first)
            for one in tilings(ins, outs, blocks)
            for first in places
        ]
        if not choices:
            return None
        tiles[layer] = min(choices, key=lambda one: busiest(one, loads, batch))
    if sum(one.fragments for one in tiles.values()) > _MAX_FRAGMENTS:
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
    """Return the largest number of groups for each number of the ``widest`` tiles that one has."""
    largest = {-(-widest // groups): groups for groups in range(1, most + 1)}
    return sorted(largest.values())


def _lanes(n: int) -> int:
    """Pitch of rows that are read 16 bytes a lane: 64 bytes apart, modulo 128."""
    return n + (32 - n) % 64


def _matrix(n: int) -> int:
    """Pitch of rows that are read as 8 x 8 matrices: an odd multiple of 16 bytes."""
    return n if n // 8 % 2 else n + 8


def _listed(values: object) -> str:
    return ", ".join(map(str, values))  # type: ignore[call-overload]
