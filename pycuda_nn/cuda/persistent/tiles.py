"""Tiles of a weight matrix, and a model of their cost for the blocks that update them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WARPS = 8  # warps of a block that multiply


@dataclass(frozen=True, kw_only=True)
class Tiles:
    """Equal tiles (outs, ins) of a weight matrix, one per block from ``first_block``."""

    outs: int
    ins: int
    count: int
    first_block: int

    @property
    def fragments(self) -> int:
        """Fragments of 16 x 8 weights of a warp."""
        return -(-(self.ins // 8) // (WARPS * 16 // self.outs))


@dataclass(frozen=True, kw_only=True)
class Operands:
    """Operands of the weight gradients.

    Attributes:
        batch: Their rows.
        item_bytes: Size of a number.
        effort: Time of a product of tensor cores, relative to one of 16 bits.
    """

    batch: int
    item_bytes: int
    effort: int


def _load(tiles: Tiles, operands: Operands) -> float:
    """Return the modelled cycles of a tile in the update."""
    batch = operands.batch
    fetched = operands.item_bytes * batch * (tiles.outs + tiles.ins) / 16
    products = batch / 16 * (40 + 24 * tiles.fragments) * operands.effort
    return 400 + fetched + products + 150 * tiles.fragments


def block_loads(all_tiles: Iterable[Tiles], blocks: int, operands: Operands) -> list[float]:
    """Return the modelled cycles of all tiles of each block."""
    loads = [0.0] * blocks
    for tiles in all_tiles:
        for block in range(tiles.count):
            loads[(tiles.first_block + block) % blocks] += _load(tiles, operands)
    return loads


def busiest(tiles: Tiles, loads: list[float], operands: Operands) -> tuple[float, float]:
    """Return the load of the busiest block with ``tiles`` added, and the sum of their loads."""
    load, blocks = _load(tiles, operands), len(loads)
    most = max(loads[(tiles.first_block + i) % blocks] for i in range(tiles.count)) + load
    return max(most, *loads), tiles.count * load


def tilings(ins: int, outs: int, blocks: int) -> list[Tiles]:
    """Return for each height the narrowest tiles for which the blocks suffice, and wider tiles."""
    found = []
    for high in (16, 32, 64, 128):
        down = -(-outs // high)
        if down > blocks or (high > 16 and high >= 2 * outs):
            continue
        narrowest = round_up(-(-ins // (blocks // down)), 8)
        for wide in sorted(
            {min(narrowest * factor, round_up(ins, 8)) for factor in (1, 2, 3, 4, 8)}
        ):
            count = down * -(-ins // wide)
            found.append(Tiles(outs=high, ins=wide, count=count, first_block=0))
    return found


def round_up(n: int, step: int) -> int:
    """Return ``n`` rounded up to a multiple of ``step``."""
    return -(-n // step) * step
