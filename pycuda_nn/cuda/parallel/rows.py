"""Where the rows of a training on several GPUs lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.parallel.shards import dealt_rows, share_of
from pycuda_nn.cuda.parallel.structs import Dealt, addresses
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.training.rows import Rows, bytes_of
from pycuda_nn.protocols import Split

_THREADS = 256


class Placement(Enum):
    """Place of the rows of a part; the value completes a sentence of the log."""

    REPLICATED = "in the memory of every GPU"
    DEALT = "dealt out over the memory of the GPUs"
    PINNED = "in pinned host memory, read by the GPUs as they train"


def placements(
    plan: TrainingPlan, parts: Mapping[str, Split], size: int, room: int, *, peers: bool
) -> dict[str, Placement]:
    """Return the place of each part: replicated if it fits, the smaller part first.

    Args:
        plan: The plan of the training.
        parts: The rows.
        size: Number of ranks.
        room: Free bytes of the GPU with the least.
        peers: Whether the GPUs can access each other's memory.
    """
    chosen = {}
    for name, part in sorted(parts.items(), key=lambda item: len(item[1].x)):
        n = len(part.x)
        targets = bytes_of(plan, n) - n * plan.layout.sizes[0] * plan.precision.item_bytes
        dealt = bytes_of(plan, share_of(size, n)) + targets
        if bytes_of(plan, n) <= room:
            chosen[name], taken = Placement.REPLICATED, bytes_of(plan, n)
        elif peers and dealt <= room:
            chosen[name], taken = Placement.DEALT, dealt
        else:
            chosen[name], taken = Placement.PINNED, targets
        room -= taken
    return chosen


@dataclass(frozen=True, kw_only=True)
class PlacedRows:
    """Rows of a part on one rank.

    Attributes:
        rows: The rows that this rank holds.
        n: Rows of the part.
        mine: Rows of the part that this rank evaluates.
        offset: Number of the first row of ``rows`` in the part.
    """

    rows: Rows
    n: int
    mine: range
    offset: int

    @property
    def local(self) -> range:
        """The rows to evaluate, as numbers in ``rows``."""
        return range(self.mine.start - self.offset, self.mine.stop - self.offset)


class HeldRows(Rows):
    """Rows of one rank: all of a part, its share, or those that another rank has pinned."""

    def __init__(
        self,
        memory: Memory,
        module: Module,
        plan: TrainingPlan,
        part: Split,
        stream: cuda.Stream,
        *,
        name: str,
        placement: Placement,
        some: range,
        pinned: int = 0,
    ) -> None:
        """Copy the rows to the device, or use those at the address ``pinned``."""
        self._borrowed = pinned
        held = Split(x=part.x[some.start : some.stop], y=part.y)
        if pinned:
            held = Split(x=part.x[:0], y=part.y)
        resident = placement is not Placement.PINNED
        super().__init__(memory, module, plan, held, stream, name=name, resident=resident)
        self.n = len(some)
        self.offset = some.start

    def target(self, number: int) -> int:
        """See :class:`Rows`: the targets of all rows of the part are here."""
        return super().target(number + self.offset)

    def _room(self, memory: Memory, name: str) -> int:
        return self._borrowed or super()._room(memory, name)


def hold(
    memory: Memory,
    module: Module,
    plan: TrainingPlan,
    part: Split,
    stream: cuda.Stream,
    *,
    name: str,
    placement: Placement,
    rank: int,
    size: int,
    pinned: int = 0,
) -> PlacedRows:
    """Return the rows of a part on ``rank``; ``pinned`` is the address of rows of rank 0."""
    n = len(part.x)
    mine = dealt_rows(rank, size, n)
    some = mine if placement is Placement.DEALT else range(n)
    rows = HeldRows(
        memory, module, plan, part, stream, name=name, placement=placement, some=some, pinned=pinned
    )
    return PlacedRows(rows=rows, n=n, mine=mine, offset=some.start)


class DealtKernels(StepKernels):
    """Gathers rows from the memory of all GPUs."""

    def __init__(
        self, context: StepContext, module: Module, held: Sequence[int], share: int
    ) -> None:
        """Keep the address of the rows of each rank, and the rows of each rank but the last."""
        super().__init__(context)
        self._exchange_module, self._held, self._share = module, list(held), share

    def gather(self, j: int, side: int, stream: cuda.Stream) -> None:
        """See :class:`StepKernels`."""
        c = self._context
        source, b, packs = c.source, c.buffers, c.plan.layout.sizes[0] // c.plan.pack
        arguments: Any = Dealt(
            x=addresses(self._held),
            y=source.y,
            order=source.order + 4 * c.first,
            clock=source.clock,
            to=b.x[side],
            targets=b.y[side],
            share=self._share,
            j=j,
            batch=c.batch,
            rows=c.rows,
            packs=packs,
            words=c.plan.target_words(),
        )
        grid = (-(-c.rows * packs // _THREADS), 1)
        self._exchange_module.launch("gather_dealt", grid, _THREADS, stream, arguments)
