"""How the persistent kernel shares a small network among the blocks; pure arithmetic, no GPU.

The names are those of ``kernels/persistent_layout.cuh``, which says what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.backends.base import Recipe, SgdHyper
from pycuda_nn.cuda.layout import Layout
from pycuda_nn.network import Network

_WARPS = 8
_MAX_HIDDEN, _MAX_BATCH, _MAX_OUTPUTS = 4, 512, 64
_MAX_CHUNK = 128  # rows of a weight gradient's operands that are in shared memory at once
_MAX_FRAGMENTS = 14  # of 16 x 8 weights in a thread's registers, master and velocity: 8 each
_ROWS = (16, 32, 64, 128)  # of a row group: a warp multiplies 16 or 32, up to 4 warps beside it


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Equal tiles (outs, ins) of one weight matrix, one a block from ``first_block`` on."""

    outs: int
    ins: int
    count: int
    first_block: int

    @property
    def fragments(self) -> int:
        """Of 16 x 8 weights, that a warp has."""
        return -(-(self.ins // 8) // (_WARPS * 16 // self.outs))


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A partition of one training; ``sizes`` are padded, ``cycles`` a guess of a step's time."""

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
    def exchange_words(self) -> int:
        """Words of 4 bytes of the three buffers in which blocks exchange results."""
        sizes, batch = self.sizes, self.batch
        weights = [i * o for i, o in zip(sizes[:-1], sizes[1:], strict=True)]
        elements = batch * (sum(sizes[1:-1]) + sum(sizes[1:])) + sum(weights) + sum(weights[1:])
        words = elements // 2 + sum(sizes[1:]) + self.row_groups
        return 3 * _up(words, 64)

    @property
    def shared_bytes(self) -> int:
        """Of one block."""
        sizes, rows = self.sizes, self.rows
        tall = 2 if rows > 16 else 1
        deep = _WARPS // (rows // (16 * tall))
        shares = [-(-(size // 16) // self.column_groups) + 1 for size in sizes[1:-1]]
        columns = 8 if self.chunk < self.batch else self.chunk * _matrix(self.tiles[0].ins)
        hidden = max(rows * _matrix(max(sizes[1:-1])), self._stage())
        members = (
            2 * rows * _lanes(sizes[0]),
            2 * columns,
            2 * hidden,
            2 * deep * rows * (24 if tall == 2 else 40) * 4,
            sum(shares) * rows * 32,
            2 * rows * (sizes[-1] + 8),
            4 * rows,
            8 * self.batch + 8 * rows,
        )
        return sum(_up(member, 16) for member in members)

    def _stage(self) -> int:
        """Elements of the weight gradients' operands."""
        ring = self.chunk < self.batch
        sizes = [
            self.chunk * (_matrix(tiles.outs) + (_matrix(tiles.ins) if layer or ring else 0))
            for layer, tiles in enumerate(self.tiles)
        ]
        return 2 * max(sizes) if ring else sum(sizes)

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


def plan(network: Network, recipe: Recipe, multiprocessors: int, shared_bytes: int) -> Plan | None:
    """Return the quickest partition on such a GPU by the model of :func:`cycles`, if any fits."""
    sizes, batch = Layout(network).sizes, recipe.batch_size
    possible = (
        network.loss == "softmax"
        and isinstance(recipe.optimizer, SgdHyper)
        and recipe.dropout == 0
        and 1 <= len(sizes) - 2 <= _MAX_HIDDEN
        and sizes[-1] <= _MAX_OUTPUTS
        and 0 < batch <= _MAX_BATCH
        and batch % 16 == 0
    )
    if not possible:
        return None
    widest = max(sizes[1:-1]) // 16
    plans = [
        one
        for rows in _ROWS
        if batch % rows == 0
        for column_groups in range(1, min(widest, multiprocessors // (batch // rows)) + 1)
        if (one := _partition(network, sizes, batch, batch // rows, column_groups))
        and one.shared_bytes <= shared_bytes
    ]
    return min(plans, key=cycles, default=None)


def cycles(plan: Plan) -> float:
    """Return a model of a step's clock cycles: latencies, then bytes and products of a block."""
    rows, sizes, batch = plan.rows, plan.sizes, plan.batch
    tall = 2 if rows > 16 else 1
    deep = _WARPS // (rows // (16 * tall))

    def product(depth: int, inputs: int) -> float:
        chunks = -(-depth // (32 * deep))
        return 500 + 90 * tall * chunks + 2 * depth * (16 + inputs) / 48

    def shares(layer: int) -> int:
        return -(-(sizes[layer] // 16) // plan.column_groups)

    total, last = 1000.0, len(sizes) - 2
    for layer in range(1, last + 1):
        total += 1000 + shares(layer) * product(sizes[layer - 1], rows if layer > 1 else 0)
    total += 2 * rows * sizes[last] / 48 + product(sizes[last], 0) * sizes[-1] / 16
    total += 500 + rows / 16 * sizes[last] / 64 * 60
    for layer in range(1, last):
        total += 700 * (layer + 1 < last) + shares(layer) * product(sizes[layer + 1], 0)
    total += 1000
    for tiles in plan.tiles:
        total += 200 + batch * (tiles.outs + tiles.ins) / 24
        total += batch / 16 * (20 + 20 * tiles.fragments) + 40 * tiles.fragments
    return total


def _partition(
    network: Network, sizes: tuple[int, ...], batch: int, row_groups: int, column_groups: int
) -> Plan | None:
    blocks = row_groups * column_groups
    tiles = []
    for layer, (ins, outs) in enumerate(zip(sizes[:-1], sizes[1:], strict=True)):
        best = min(_tilings(ins, outs, blocks), key=_tile_cost, default=None)
        if best is None:
            return None
        first = 0 if layer == 0 else blocks - best.count  # few blocks have a tile of every layer
        tiles.append(
            Tiles(outs=best.outs, ins=best.ins, count=best.count, first_block=first)
        )
    if sum(one.fragments for one in tiles) > _MAX_FRAGMENTS:
        return None
    chunk = max(size for size in range(16, min(batch, _MAX_CHUNK) + 1, 16) if batch % size == 0)
    return Plan(
        sizes=sizes,
        widths=network.sizes,
        batch=batch,
        row_groups=row_groups,
        column_groups=column_groups,
        chunk=chunk,
        tiles=tuple(tiles),
    )


def _tilings(ins: int, outs: int, blocks: int) -> list[Tiles]:
    """Return for each height the narrowest tiles of which there are enough blocks."""
    found = []
    for high in (16, 32, 64, 128):
        down = -(-outs // high)
        if down <= blocks and (high == 16 or high < 2 * outs):
            wide = _up(-(-ins // (blocks // down)), 8)
            count = down * -(-ins // wide)
            found.append(Tiles(outs=high, ins=wide, count=count, first_block=0))
    return found


def _tile_cost(tiles: Tiles) -> tuple[int, int]:
    return tiles.fragments, tiles.outs + tiles.ins


def _up(n: int, step: int) -> int:
    return -(-n // step) * step


def _lanes(n: int) -> int:
    """Pitch of rows that are read 16 bytes a lane: 64 bytes apart, modulo 128."""
    return n + (32 - n) % 64


def _matrix(n: int) -> int:
    """Pitch of rows that are read as 8 x 8 matrices: an odd multiple of 16 bytes."""
    return n if n // 8 % 2 else n + 8


def _listed(values: object) -> str:
    return ", ".join(map(str, values))  # type: ignore[call-overload]
