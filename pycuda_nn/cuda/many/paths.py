"""The paths of a batch: captured steps, fused steps, the tiny and the column kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pycuda_nn.cuda.many.columns import (
    ColumnsEpoch,
    ColumnsKernel,
    options_of,
)
from pycuda_nn.cuda.many.columns_plan import ColumnsPlan, recognise
from pycuda_nn.cuda.many.fused import FusedKernels, FusedStep
from pycuda_nn.cuda.many.kernels import ManyKernels
from pycuda_nn.cuda.many.plan import ManyBuffers, ManyGemms, ManyPlan
from pycuda_nn.cuda.many.sources import COLUMNS_FILES, TINY_ENTRY
from pycuda_nn.cuda.many.tiny import ManyTinyKernel
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.stack import NotCovered
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import BatchSource, Streams
from pycuda_nn.cuda.step.weights import Weights, optimizer_number
from pycuda_nn.cuda.tiny.kernel import source_of
from pycuda_nn.cuda.tiny.plan import TinyPlan, rounds
from pycuda_nn.cuda.training.choice import Paths
from pycuda_nn.cuda.training.epoch import Epoch, GraphEpoch, TinyEpoch, seconds_of_step
from pycuda_nn.cuda.training.order import DeviceOrder

Made = TypeVar("Made", ManyTinyKernel, ColumnsKernel, TrainingStep)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What all paths share.

    Attributes:
        tiny: Plan of the tiny kernel, or why there is none.
        nets: Address of the settings of the networks.
        n: Training rows.
        batch: Rows of a full minibatch.
    """

    plan: ManyPlan
    tiny: TinyPlan | NotCovered
    device: Device
    memory: Memory
    module: Module
    gemms: ManyGemms
    weights: Weights
    streams: Streams
    buffers: ManyBuffers
    order: DeviceOrder
    nets: int
    n: int
    batch: int

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return -(-self.n // self.batch)


class ManyPaths:
    """Makes the epochs of a batch; :meth:`close` closes them."""

    def __init__(self, parts: Parts, source: BatchSource, *, resident: bool) -> None:
        """Keep what the paths share; ``resident``: whether the rows are in GPU memory."""
        self._parts, self._source, self._resident = parts, source, resident
        self._made: list[ManyTinyKernel | ColumnsKernel | TrainingStep] = []
        self._choosers: list[Callable[[Sequence[int]], None]] = []

    def fastest(self) -> Epoch:
        """Return the steps of an epoch by the fastest path, and log the path."""
        p, plan, tiny = self._parts, self._parts.plan, self._parts.tiny
        what = f"{plan.count} networks at once, {plan.stack}, {plan.precision.name}, "
        what += f"minibatch {p.batch:,}"
        stack, optimizer = plan.stack, optimizer_number(plan.recipe)
        name = f"{what} {stack.sizes} {stack.activation} {stack.drops} {optimizer}"
        paths = Paths(self._seconds, p.gemms.where, name, tune=p.gemms.tune)
        source = plan.code(p.device.facts, p.weights.master_kind)
        reason = tiny.reason if isinstance(tiny, NotCovered) else ""
        recipe = dataclasses.replace(plan.recipe, batch_size=p.batch)
        columns = recognise(stack, recipe, plan.precision.item_bytes, p.device.facts)
        if isinstance(columns, ColumnsPlan) and self._resident:
            options = options_of(columns, plan, p.weights.master_kind)
            code = kernel_source(*COLUMNS_FILES) + " ".join(options)
            paths.add("column kernel", lambda: self._columns_epoch(columns), source=code)
        if plan.fuses(p.device.facts):
            paths.add("fused step", lambda: self._epoch_of(self._fused_step), source=source)
            reason = ""
        paths.add("captured step", lambda: self._epoch_of(self._step), reason, source=source)
        if isinstance(tiny, TinyPlan):
            paths.add_tiny(
                tiny,
                lambda: self._tiny_epoch(tiny),
                rounds=rounds(tiny, plan.count, p.device.facts.multiprocessors),
                source=source_of(tiny, TINY_ENTRY),
            )
        return paths.fastest(what)

    def choose(self, members: Sequence[int]) -> None:
        """Train these networks in later epochs; a kernel of many steps leaves out the others."""
        for choose in self._choosers:
            choose(members)

    def close(self) -> None:
        """Close steps and kernels."""
        while self._made:
            self._made.pop().close()

    def _seconds(self, epoch: Epoch) -> float:
        p = self._parts
        return seconds_of_step(
            epoch, self._source, p.streams.main, p.n // p.batch, networks=p.plan.count
        )

    def _epoch_of(self, step_of: Callable[[int], TrainingStep]) -> GraphEpoch:
        n, batch = self._parts.n, self._parts.batch
        full, rest = step_of(batch), step_of(n % batch) if n % batch else None
        return GraphEpoch(full, n // batch, rest)

    def _columns_epoch(self, plan: ColumnsPlan) -> ColumnsEpoch:
        p, main = self._parts, self._parts.streams.main
        kernel = self._kept(
            ColumnsKernel(
                p.device, p.memory, plan, p.plan, p.weights,
                nets=p.nets, slots=p.order.slots, steps=p.steps,
            )
        )  # fmt: skip
        self._choosers.append(lambda members: kernel.choose(members, main))
        step_of = self._fused_step if p.plan.fuses(p.device.facts) else self._step
        rest = step_of(p.n % p.batch) if p.n % p.batch else None
        return ColumnsEpoch(
            kernel, p.module, self._source, main, p.n // p.batch, p.plan.count, rest
        )

    def _step(self, rows: int) -> TrainingStep:
        context = self._context(rows)
        kernels = ManyKernels(context, **self._numbers)
        return self._kept(TrainingStep(context, self._parts.gemms, kernels))

    def _fused_step(self, rows: int) -> TrainingStep:
        context = self._context(rows)
        kernels = FusedKernels(context, self._parts.plan, **self._numbers)
        return self._kept(FusedStep(context, self._parts.gemms, kernels))

    def _tiny_epoch(self, plan: TinyPlan) -> TinyEpoch:
        p, main = self._parts, self._parts.streams.main
        kernel = self._kept(
            ManyTinyKernel(
                p.device, p.memory, plan, p.plan,
                nets=p.nets, slots=p.order.slots, steps=p.steps,
            )
        )  # fmt: skip
        self._choosers.append(lambda members: kernel.choose(members, main))
        return TinyEpoch(kernel, p.module, p.weights, self._source, main, p.n)

    @property
    def _numbers(self) -> dict[str, int]:
        p = self._parts
        return {"count": p.plan.count, "nets": p.nets, "slots": p.order.slots, "steps": p.steps}

    def _context(self, rows: int) -> StepContext:
        p = self._parts
        return StepContext(
            plan=p.plan,
            module=p.module,
            streams=p.streams,
            weights=p.weights,
            buffers=p.buffers,
            source=self._source,
            rows=rows,
            batch=p.batch,
            multiprocessors=p.device.facts.multiprocessors,
        )

    def _kept(self, made: Made) -> Made:
        self._made.append(made)
        return made
