"""Device memory that the steps of a session share."""

from __future__ import annotations

from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.tilings import MAPS_BYTES, TILINGS

PARTS = 128  # most blocks that sum rows of a gradient for a bias
SUM_ROWS = 64  # rows of a sum for a bias in the kernel data_grad
LOSS_PARTS = 1024  # most blocks that sum losses


class Buffers:
    """Memory that a step of at most ``rows`` rows writes, except for the parameters.

    Attributes:
        rows: Largest number of rows.
        x, y: Rows and targets of a minibatch, for even and odd steps.
        activations: a_l of the hidden layers.
        z: z_l of the hidden layers, if the slope of the activation needs them; else empty.
        deltas: Gradient of z_l of each layer.
        logits: z of the last layer, float32.
        partials: Column sums of the delta of each layer, float32 (blocks, outputs).
        maps: Memory for the tensor maps of each layer and tiling, zeros.
        loss: Sums of the losses of the rows of each block.
    """

    def __init__(self, memory: Memory, plan: TrainingPlan, rows: int, head_blocks: int) -> None:
        self.rows = rows
        item, sizes = plan.precision.item_bytes, plan.layout.sizes
        what = f"a minibatch of {rows:,} rows"

        def rows_of(width: int, item_bytes: int = item) -> int:
            return memory.allocate(rows * width * item_bytes, what)

        self.x = [rows_of(sizes[0]) for _ in range(2)]
        self.y = [rows_of(plan.target_words(), 4) for _ in range(2)]
        self.activations = [rows_of(width) for width in sizes[1:-1]]
        self.z = [rows_of(width) for width in sizes[1:-1]] if plan.stack.keeps_z else []
        self.deltas = [rows_of(width) for width in sizes[1:]]
        self.logits = rows_of(sizes[-1], 4)
        parts = max(PARTS, head_blocks, -(-rows // SUM_ROWS))
        self.partials = [memory.allocate(4 * parts * width, what) for width in sizes[1:]]
        self.maps = memory.allocate(MAPS_BYTES * len(sizes) * len(TILINGS), what)
        self.loss = memory.allocate(4 * LOSS_PARTS, what)
