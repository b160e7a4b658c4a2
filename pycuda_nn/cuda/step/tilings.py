"""Tiles of the kernel of data_grad.cuh."""

from __future__ import annotations

from dataclasses import dataclass

OPTIONS = ("-DDROPOUT=0",)
TILE_M = 128  # rows of a tile
MAPS_BYTES = 4 * 128 + 64  # tensor maps and counters of a launch; a multiple of 64
_BARRIERS_BYTES = 1024


@dataclass(frozen=True, kw_only=True)
class Tiling:
    """Tiles of a block.

    Attributes:
        n: Columns.
        stages: Loads in flight.
        cluster: Blocks that share the weights.
    """

    n: int
    stages: int
    cluster: int

    def shared_bytes(self) -> int:
        """Return the size of ``Shared`` in data_grad.cuh."""
        operands, result, sums = 128 * (TILE_M + self.n), 2 * TILE_M * self.n, 64 * self.n
        return self.stages * operands + result + sums + _BARRIERS_BYTES

    def options(self) -> list[str]:
        """Return the compiler options."""
        return [f"-DTILE_N={self.n}", f"-DSTAGES={self.stages}", f"-DCLUSTER={self.cluster}"]


TILINGS = (
    Tiling(n=256, stages=3, cluster=2),
    Tiling(n=256, stages=3, cluster=1),
    Tiling(n=128, stages=5, cluster=2),
    Tiling(n=128, stages=5, cluster=1),
)
