"""Memory and blocks of the exchange; this needs no GPU."""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.parallel.shards import LINE
from pycuda_nn.cuda.parallel.structs import FLAGS

_LOCAL_BYTES = 64  # turns and arrived blocks of a layer
_MOST_INNER, _MOST_FIRST, _MOST_SUMS = 32, 64, 16
MOST_LAYERS = 48  # more exchanges that wait could take all multiprocessors
_FREE = 8  # multiprocessors that no exchange takes
THREADS = 512  # of a block


@dataclass(frozen=True, kw_only=True)
class Room:
    """Places in bytes from the start of the room, which is zero before the first exchange.

    Attributes:
        flags, sums, local: Place of each layer.
        trouble: Place of the word that ends all waits.
        n_bytes: Size.
    """

    flags: list[int]
    sums: list[int]
    local: list[int]
    trouble: int
    n_bytes: int


def room_of(layers: list[PaddedDense], size: int) -> Room:
    """Return the room for the exchanges of ``size`` ranks."""
    at = 0

    def place(n_bytes: int) -> int:
        nonlocal at
        start, at = at, at + -(-n_bytes // 256) * 256
        return start

    return Room(
        flags=[place(4 * FLAGS) for _ in layers],
        sums=[place(size * 4 * layer.outputs) for layer in layers],
        local=[place(_LOCAL_BYTES) for _ in layers],
        trouble=place(4),
        n_bytes=at,
    )


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Blocks of the kernels of each layer: of its exchange, and of the sums of its bias.

    Exchanges that wait for other ranks leave multiprocessors for the products that those need. The
    first layer has the most blocks: nothing runs next to its exchange, which is the last.
    """

    weights: list[int]
    sums: list[int]


def blocks_of(layers: list[PaddedDense], multiprocessors: int, size: int) -> Blocks:
    """Return the blocks for GPUs with this number of multiprocessors, ``size`` of them."""
    free = max(len(layers), multiprocessors - _FREE)
    sums = [min(_MOST_SUMS, -(-layer.outputs // 32)) for layer in layers]
    lines = [layer.inputs * layer.outputs // (LINE * size) for layer in layers]
    wanted = [max(1, min(_MOST_INNER, -(-n // THREADS))) for n in lines[1:]]
    share = min(1.0, free / max(1, sum(wanted)))
    inner = [max(1, int(share * blocks)) for blocks in wanted]
    first = max(1, min(_MOST_FIRST, -(-lines[0] // THREADS), free - sum(inner[1:])))
    return Blocks(weights=[first, *inner], sums=sums)
