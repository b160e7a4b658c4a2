"""Distribute networks with one hidden layer over clusters of blocks; this needs no GPU.

``columns.cuh`` explains the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pycuda_nn.cuda.layout import padded
from pycuda_nn.cuda.stack import DenseStack, NotCovered
from pycuda_nn.layers import Softmax
from pycuda_nn.protocols import AdamHyper, TrainingRecipe

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.device import Facts

_COLUMNS, _OUTPUTS = 16, 16  # of a block; of the network, padded
_TILES = (1, 3, 5, 7)  # of 16 inputs of a warp, whose weights fit in registers
_MOST_WORKERS = 7
_MOST_BLOCKS, _PORTABLE_BLOCKS = 16, 8  # of a cluster; of one that each Hopper GPU has room for
_LEAST_MULTIPROCESSORS = 7 * _MOST_BLOCKS + 1  # of eight parts, one has room for the largest
_MOST_LABELS, _MOST_ROUNDS = 16, 16  # of a warp; of a minibatch: both are unrolled code


@dataclass(frozen=True, kw_only=True)
class ColumnsPlan:
    """Distribution of a network with one hidden layer; ``sizes`` are padded.

    Attributes:
        width: Width of the hidden layer, without padding.
        classes: Outputs, without padding.
        batch: Rows of a minibatch.
        tiles: Tiles of 16 inputs whose weights a warp has.
        workers: Warps with weights of the inputs.
    """

    sizes: tuple[int, ...]
    width: int
    classes: int
    batch: int
    tiles: int
    workers: int

    @property
    def blocks(self) -> int:
        """Blocks of the cluster of a network."""
        return self.sizes[1] // _COLUMNS

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return 32 * (self.workers + 1)

    @property
    def is_short(self) -> bool:
        """Whether the unrolled code of a step compiles in seconds."""
        rounds = -(-self.batch // 32)
        share = -(-32 * rounds // self.blocks)
        return rounds <= _MOST_ROUNDS and -(-share // (self.workers + 1)) <= _MOST_LABELS

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        rows = -(-self.batch // 32) * 32
        share = -(-rows // self.blocks)
        slices = 2 * self.workers * rows * 16 * self.tiles
        sums = max(4 * self.workers * 32 * _COLUMNS, 4 * rows * _COLUMNS)
        parts = 4 * self.blocks * share * _OUTPUTS
        rest = 2 * rows * _COLUMNS + 2 * _COLUMNS * _OUTPUTS + 4 * self.blocks * share
        total = slices + sums + parts + rest + 4 * (_COLUMNS + _OUTPUTS) + 2 * rows
        return -(-total // 16) * 16

    def macros(self) -> tuple[str, ...]:
        """Return the definitions of the kernel source."""
        values = {
            "INS": self.sizes[0],
            "HIDDEN": self.sizes[1],
            "WIDTH": self.width,
            "CLASSES": self.classes,
            "BATCH": self.batch,
            "TILES": self.tiles,
            "WORKERS": self.workers,
            "SHARED": self.shared_bytes,
        }
        return tuple(f"-DCOLUMNS_{name}={value}" for name, value in values.items())


def recognise(
    stack: DenseStack, recipe: TrainingRecipe, item_bytes: int, facts: Facts
) -> ColumnsPlan | NotCovered:
    """Return the distribution of each network of a group on a GPU, or why there is none.

    It needs 16-bit activations, one hidden layer of up to 256 columns, a softmax of up to 16
    classes, SGD, and room for the rows of a minibatch in the shared memory of a block.
    """
    sizes = tuple(padded(width) for width in stack.sizes)
    capable = facts.compute_capability[0] == 9
    kinds = item_bytes == 2 and type(stack.loss) is Softmax
    if not (capable and kinds):
        return NotCovered("this GPU, precision or loss is not supported by the column kernel")
    if stack.keeps_z or isinstance(recipe.optimizer, AdamHyper):
        return NotCovered("this activation or optimizer is not supported by the column kernel")
    is_large = facts.multiprocessors >= _LEAST_MULTIPROCESSORS
    widest = _COLUMNS * (_MOST_BLOCKS if is_large else _PORTABLE_BLOCKS)
    if not (len(sizes) == 3 and sizes[2] == _OUTPUTS and sizes[1] <= widest):
        return NotCovered("the layers are not supported by the column kernel on this GPU")
    needed = -(-sizes[0] // 16)
    for tiles in _TILES:
        workers = -(-needed // tiles)
        made = ColumnsPlan(
            sizes=sizes, width=stack.sizes[1], classes=stack.sizes[2], batch=recipe.batch_size,
            tiles=tiles, workers=workers,
        )  # fmt: skip
        fits = workers <= _MOST_WORKERS and made.shared_bytes <= facts.shared_bytes
        if fits and made.is_short:
            return made
    return NotCovered("the rows of a minibatch are too large for the column kernel")
