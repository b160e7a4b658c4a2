"""Distribute a small network over the blocks of the persistent kernel; this needs no GPU.

``layout.cuh`` uses the same names and explains them.
"""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.groups import chunks, column_groups, row_groups
from pycuda_nn.cuda.persistent.tiles import (
    WARPS,
    Operands,
    Tiles,
    block_loads,
    busiest,
    round_up,
    tilings,
)
from pycuda_nn.cuda.persistent.variant import Variant
from pycuda_nn.cuda.stack import DenseStack

_MAX_FRAGMENTS = {1: 14, 2: 9}  # of 16 x 8 weights per warp, by moments: 4 registers of each
_MAX_ROW_GROUPS = 32  # a warp sums their losses
_CLEARLY = 0.93  # of the modelled time, by which blocks without a strip must be faster
_ROWS = (16, 32, 64, 128)  # rows of a row group: a warp multiplies 16 or 32, up to 4 warps share


@dataclass(frozen=True, kw_only=True)
class KernelPlan:
    """A partition of one training; ``sizes`` are padded.

    A minibatch of ``batch`` rows is padded to ``row_groups`` times ``rows``.
    """

    variant: Variant
    sizes: tuple[int, ...]
    widths: tuple[int, ...]
    batch: int
    rows: int
    row_groups: int
    column_groups: int
    chunk: int
    tiles: tuple[Tiles, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks, which must all be resident."""
        return self.row_groups * self.column_groups

    @property
    def padded(self) -> int:
        """Rows of a minibatch with padding."""
        return self.rows * self.row_groups

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
        sizes, batch = self.sizes, self.padded
        weights = [i * o for i, o in itertools.pairwise(sizes)]
        elements = batch * (sum(sizes[1:-1]) + sum(sizes[1:])) + sum(weights) + sum(weights[1:-1])
        elements += batch * sizes[-2] if self.variant.slopes else 0
        words = elements * self.variant.item_bytes // 4 + sum(sizes[1:]) + self.row_groups
        return 3 * round_up(words, 64)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        sizes, rows, variant = self.sizes, self.rows, self.variant
        item = variant.item_bytes
        own = sum(self.share(h) * self.strip(h) for h in range(1, len(sizes) - 1)) * rows
        elements = (
            rows * _lanes(sizes[0], 64 // item),
            8 if self.chunk < self.padded else self.chunk * _matrix(self.tiles[0].ins),
            self._stage(),
            rows * _matrix(max(sizes[1:-1])) if variant.slopes else 8,
            sizes[-1] * _matrix(sizes[-2]),
            rows * (sizes[-1] + 16 // item),
            own,
        )
        words = (
            2 * self.deep * rows * (24 if self.tall == 2 else 40),
            (1 + variant.moments) * sum(tiles.outs for tiles in self.tiles),
            rows,
            2 * self.padded,
            2 * rows * variant.targets,
        )
        masks = 4 * (own // 16 if variant.dropout else 8)
        items = sum(round_up(item * n, 16) for n in elements)
        return items + sum(round_up(4 * n, 16) for n in words) + round_up(masks, 16)

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
        if self.chunk < self.padded:
            return max(rows, 2 * max(map(sum, zip(deltas, inputs, strict=True))))
        return max(rows, sum(deltas)) + sum(inputs[1:])

    def source(self) -> str:
        """Return the definitions of the kernel source."""
        values: dict[str, object] = {
            "LAYERS": len(self.tiles),
            "EXAMPLES": self.batch,
            "ROWS": self.rows,
            "ROW_GROUPS": self.row_groups,
            "COLUMN_GROUPS": self.column_groups,
            "CHUNK": self.chunk,
            "SIZES": _listed(self.sizes),
            "WIDTHS": _listed(self.widths),
            "TILE_OUT": _listed([tiles.outs for tiles in self.tiles]),
            "TILE_IN": _listed([tiles.ins for tiles in self.tiles]),
            "FIRST_BLOCK": _listed([tiles.first_block for tiles in self.tiles]),
            "SHARED_BYTES": self.shared_bytes,
            **self.variant.definitions(),
        }
        return "".join(f"#define PLAN_{name} {value}\n" for name, value in values.items())


def quickest(
    stack: DenseStack, variant: Variant, batch: int, multiprocessors: int, shared_bytes: int
) -> KernelPlan | None:
    """Return the fastest partition by the model of :func:`cycles`, or None if none fits."""
    widest = max(ParameterLayout(stack.network).sizes[1:-1]) // 16

    def fastest(most: int) -> KernelPlan | None:
        """Return the fastest partition of at most ``most`` column groups."""
        plans = [
            plan
            for rows, down in _row_groups(variant, batch)
            if down <= min(_MAX_ROW_GROUPS, multiprocessors)
            for groups in column_groups(widest, min(most, multiprocessors // down))
            if (plan := partition(stack, variant, batch, (rows, down, groups), shared_bytes))
        ]
        return min(plans, key=cycles, default=None)

    found = fastest(widest)  # more blocks have no strip in the passes
    if found is None:
        return fastest(multiprocessors)
    wider = fastest(2 * widest) if variant.item_bytes > 2 else None
    return wider if wider and cycles(wider) < _CLEARLY * cycles(found) else found


def _row_groups(variant: Variant, batch: int) -> list[tuple[int, int]]:
    """Return rows of a row group and numbers of groups that can be the fastest."""
    mosts = (128,) if variant.item_bytes == 2 else (128, 64)  # rows of a chunk that fit
    return [(rows, down) for rows in _ROWS for down in {row_groups(batch, rows, n) for n in mosts}]


def cycles(plan: KernelPlan) -> float:
    """Return the modelled clock cycles of a step, within a third of the measured ones on an H200.

    The model adds the latency of each exchange between blocks, and the bytes and products of a
    block.
    """
    rows, sizes, last = plan.rows, plan.sizes, len(plan.sizes) - 2
    operands = _operands(plan.variant, plan.padded)
    item, effort = operands.item_bytes, operands.effort
    per_chunk = 45 * plan.tall * effort * 2 / item

    def product(depth: int, columns: int) -> float:
        chunks = -(-depth // (64 // item * plan.deep))
        return 500 + per_chunk * chunks * columns / 16 + item * depth * columns / 20

    total = 1500.0
    for layer in range(1, last + 1):
        exchanged = item * rows * sizes[layer - 1] / 12 * (layer > 1)
        strip = product(sizes[layer - 1], plan.strip(layer)) + exchanged
        total += 1000 + plan.share(layer) * strip
    total += 800 + item * rows * sizes[last] / 12 + product(sizes[last], 0) * sizes[-1] / 16
    total += 100 + rows / 16 * sizes[last] / 64 * 200 * effort
    for layer in range(1, last):
        strip = product(sizes[layer + 1], plan.strip(layer))
        total += 1500 * (layer + 1 < last) + plan.share(layer) * strip
    return total + 1000 + max(block_loads(plan.tiles, plan.blocks, operands))


def partition(
    stack: DenseStack,
    variant: Variant,
    batch: int,
    shape: tuple[int, int, int],
    shared_bytes: int,
) -> KernelPlan | None:
    """Return the plan with this shape, or None if registers or shared memory do not suffice.

    Args:
        stack: The network.
        variant: Variant of the kernel.
        batch: Rows of a minibatch.
        shape: Rows of a row group, row groups and column groups.
        shared_bytes: Shared memory of a block.
    """
    sizes = ParameterLayout(stack.network).sizes
    rows, down, across = shape
    blocks, padded = down * across, rows * down
    tiles = _tiles_of(sizes, blocks, _operands(variant, padded))
    if not tiles or sum(one.fragments for one in tiles) > _MAX_FRAGMENTS[variant.moments]:
        return None
    plan = KernelPlan(
        variant=variant,
        sizes=sizes,
        widths=stack.sizes,
        batch=batch,
        rows=rows,
        row_groups=down,
        column_groups=across,
        chunk=padded,
        tiles=tiles,
    )
    plans = (dataclasses.replace(plan, chunk=chunk) for chunk in chunks(padded, variant.item_bytes))
    return next((plan for plan in plans if plan.shared_bytes <= shared_bytes), None)


def _operands(variant: Variant, batch: int) -> Operands:
    """Return the operands of the weight gradients for the models of their cost."""
    effort = variant.item_bytes // 2 * (2 if variant.products > 1 else 1)
    return Operands(batch=batch, item_bytes=variant.item_bytes, effort=effort)


def _tiles_of(sizes: tuple[int, ...], blocks: int, operands: Operands) -> tuple[Tiles, ...]:
    """Return the tiles of each matrix, the largest placed first; none if they do not fit."""
    tiles: dict[int, Tiles] = {}
    layers = list(enumerate(itertools.pairwise(sizes)))
    for layer, (ins, outs) in sorted(layers, key=lambda item: -item[1][0] * item[1][1]):
        loads = block_loads(tiles.values(), blocks, operands)
        places = {0, *((placed.first_block + placed.count) % blocks for placed in tiles.values())}
        choices = [
            dataclasses.replace(tiling, first_block=first)
            for tiling in tilings(ins, outs, blocks)
            for first in places
        ]
        if not choices:
            return ()
        tiles[layer] = min(choices, key=lambda choice: busiest(choice, loads, operands))
    return tuple(tiles[layer] for layer in range(len(tiles)))


def _lanes(n: int, apart: int) -> int:
    """Return the pitch of rows that are read by 16 bytes per lane: ``apart`` modulo its double."""
    return n + (apart - n) % (2 * apart)


def _matrix(n: int) -> int:
    """Return the pitch of rows that are read as 8 x 8 matrices: an odd multiple of 16 bytes."""
    return n if n // 8 % 2 else n + 8


def _listed(values: object) -> str:
    return ", ".join(map(str, values))  # type: ignore[call-overload]
