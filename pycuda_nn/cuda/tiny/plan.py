"""Distribute a tiny network over the blocks of its kernel; this needs no GPU.

``layout.cuh`` uses the same names and explains them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from dataclasses import dataclass

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.stack import DenseStack

_TYPES = {"float32": "float", "tf32": "float", "fp16": "half16", "bf16": "bfloat16"}
MOMENTUM, NESTEROV, ADAM = 0, 1, 2  # OPTIMIZER of update.cuh
_LARGEST_CLUSTER = 8  # blocks of a cluster on all GPUs that have clusters
_MOST_NEAR = 7000  # parameters; the exchange of more is faster through the L2 cache
_LEAST_ROWS = 4  # of a block


@dataclass(frozen=True, kw_only=True)
class TinyPlan:
    """The kernel of one training.

    Attributes:
        stack: The network.
        batch: Rows of a minibatch.
        precision: Name of the precision of the rows in GPU memory; the arithmetic is float32.
        optimizer: ``OPTIMIZER`` of ``update.cuh``.
        blocks, threads: Blocks, which share the rows of a minibatch, and threads of each.
        cluster: Whether the blocks are a cluster and read the shared memory of each other.
    """

    stack: DenseStack
    batch: int
    precision: str
    optimizer: int
    blocks: int = 1
    threads: int = 256
    cluster: bool = False

    @property
    def moments(self) -> int:
        """Numbers that the optimizer keeps of a parameter."""
        return 2 if self.optimizer == ADAM else 1

    @property
    def rows(self) -> int:
        """Rows of a block, rounded up to fours."""
        return fours(-(-self.batch // self.blocks))

    @property
    def params(self) -> int:
        """Parameters in shared memory, with padding."""
        return sum((fours(i) + 4) * _odd_fours(o) for i, o in itertools.pairwise(self.stack.sizes))

    @property
    def slice(self) -> int:
        """Parameters that a block updates."""
        return fours(-(-self.params // self.blocks))

    @property
    def targets(self) -> int:
        """Numbers of the target of a row."""
        return 1 if self.stack.loss.of_classes else self.stack.sizes[-1]

    @functools.cached_property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        widths, rows = self.stack.sizes, self.rows
        pitches = [_odd_fours(fours(width) + 4) for width in widths]
        warp_rows = 32 // min(32, 1 << (widths[-1] - 1).bit_length())
        loss_rows = -(-rows // warp_rows) * warp_rows
        words = self.params + self.moments * self.slice
        words += rows * 2 * pitches[0]
        words += rows * sum(pitches[1:-1]) * (3 if self.stack.keeps_z else 2)
        words += 2 * loss_rows * pitches[-1] + 2 * fours(loss_rows * self.targets) + 2 * rows + 36
        words += 4 * self.threads if self.blocks > 1 else 0
        words += self.params if self.cluster else 0
        if self.stack.drops:
            shorts = sum(rows * width // 16 + 2 for width in widths[1:-1])
            words += 2 * fours(-(-shorts // 2))
        return 4 * words

    def source(self) -> str:
        """Return the definitions at the start of the kernel source."""
        stack = self.stack
        values: dict[str, object] = {
            "LAYERS": len(stack.sizes) - 1,
            "WIDTHS": ", ".join(map(str, stack.sizes)),
            "SIZES": ", ".join(map(str, ParameterLayout(stack.network).sizes)),
            "BATCH": self.batch,
            "BLOCKS": self.blocks,
            "THREADS": self.threads,
            "CLUSTER": int(self.cluster),
            "ATTRIBUTES": f"__cluster_dims__({self.blocks}, 1, 1)" if self.cluster else "",
            "X": _TYPES[self.precision],
            "TARGET": "int" if stack.loss.of_classes else "float",
            "TARGETS": self.targets,
            "ROW_LOSS": stack.kernels.row,
        }
        return "".join(f"#define PLAN_{name} {value}\n" for name, value in values.items())

    def macros(self) -> tuple[str, ...]:
        """Return the compiler options."""
        return (
            "-DT_FLOAT",
            "-DMASTER=0",
            "--prec-div=false",
            "--prec-sqrt=false",
            f"-DACTIVATION={self.stack.activation_number}",
            f"-DDROPOUT={int(self.stack.drops)}",
            f"-DOPTIMIZER={self.optimizer}",
        )

    def __str__(self) -> str:
        return "1 block" if self.blocks == 1 else f"{self.blocks} blocks"


def plans(
    stack: DenseStack,
    batch: int,
    precision: str,
    optimizer: int,
    *,
    multiprocessors: int,
    shared_bytes: int,
    clusters: bool,
    networks: int = 1,
) -> list[TinyPlan]:
    """Return the possible plans, by the number of blocks: powers of two.

    Args:
        multiprocessors, shared_bytes: Of the GPU; the blocks must all be resident.
        clusters: Whether the GPU has clusters.
        networks: Networks that train at once. Several blocks of one of them are a cluster, since
            the blocks of all of them are not always resident.
    """
    one = TinyPlan(stack=stack, batch=batch, precision=precision, optimizer=optimizer)
    found = []
    for blocks in (1 << power for power in range(multiprocessors.bit_length())):
        near = clusters and 1 < blocks <= _LARGEST_CLUSTER
        near = near and (networks > 1 or one.params <= _MOST_NEAR)
        plan = dataclasses.replace(one, blocks=blocks, cluster=near)
        fits = plan.rows <= plan.threads and plan.shared_bytes <= shared_bytes
        fits = fits and (networks == 1 or blocks == 1 or near)
        if fits and (blocks == 1 or -(-batch // blocks) >= _LEAST_ROWS):
            found.append(plan)
    return found


def microseconds(plan: TinyPlan) -> float:
    """Return the modelled time of a step, within a third of the measured ones on an H100.

    The model adds the latency of the passes, the products of a block, the random bits of dropout,
    and the exchange of blocks. Of 45 plans of 7 networks, timed with ``threads`` = 256.
    """
    widths, thousands = plan.stack.sizes, plan.params / 1e3
    pairs = list(itertools.pairwise(widths))
    products = sum(
        plan.rows * (2 * (i + 4) + (i if number else 0)) * fours(o)
        for number, (i, o) in enumerate(pairs)
    )
    total = 1.1 * len(pairs) + products / 94e3
    if plan.stack.drops:
        total += 0.6e-3 * plan.rows * sum(widths[1:-1])
    if plan.cluster:
        total += 1.25 + 0.34 * thousands
    elif plan.blocks > 1:
        total += 3.25 + 0.1 * thousands + 0.46e-3 * thousands * plan.blocks
    return total


def rounds(plan: TinyPlan, networks: int, multiprocessors: int) -> int:
    """Return how often the blocks of all networks fill the GPU, one on each multiprocessor."""
    return -(-networks * plan.blocks // multiprocessors)


def fours(n: int) -> int:
    """Return ``n`` rounded up to a multiple of 4."""
    return -(-n // 4) * 4


def _odd_fours(n: int) -> int:
    """Return the pitch of rows without bank conflicts: an odd number of fours."""
    return 4 * (fours(n) // 4 | 1)
