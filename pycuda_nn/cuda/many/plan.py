"""Plan of a group: one network shape, and the recipe of each network."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import Product
from pycuda_nn.cuda.many.layout import ManyLayout
from pycuda_nn.cuda.many.structs import ManyActivation, ManyUpdate
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.buffers import LOSS_PARTS, PARTS, Buffers
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.sources import ORDER_FILES, STEP_FILES
from pycuda_nn.cuda.step.weights import optimizer_number
from pycuda_nn.layers import Dropout
from pycuda_nn.protocols import TrainingRecipe

_SIGNATURES: dict[str, Any] = {
    "gather_many": "PPPPiiiiiiPP",
    "convert": "PqiiP",
    "tick_many": "Pii",
    "noise": "Pq",
    "bias_activation_many": ManyActivation,
    "activation_grad_many": ManyActivation,
    "update_many": ManyUpdate,
    "draw_many": "PPiiPQ",
    "merge_pass": "PPiii",
    "merge_tile": "PPiii",
}


@dataclass(frozen=True, kw_only=True)
class ManyPlan(TrainingPlan):
    """A network shape, a precision, and the recipe and the dropout of each network.

    ``stack`` and ``recipe`` are those of any of them: only their shape and kind count.
    """

    recipes: tuple[TrainingRecipe, ...]
    dropouts: tuple[Dropout, ...]

    @property
    def count(self) -> int:
        """Number of networks."""
        return len(self.recipes)

    @functools.cached_property
    def layout(self) -> ManyLayout:
        """Layout of the parameters of all networks."""
        return ManyLayout(self.stack.network, self.count)

    @property
    def relu_in_product(self) -> bool:
        """Whether the matrix product applies the activation: never."""
        return False

    @property
    def fused_head(self) -> bool:
        """Whether the last layer and its loss are one kernel: never."""
        return False

    def module(self, device: Device, master_kind: int) -> Module:
        """Return the kernels, loaded on the active device."""
        source, signatures, options = self.program(master_kind)
        return Module(device, source, signatures, options)

    def program(self, master_kind: int) -> tuple[str, dict[str, Any], list[str]]:
        """Return source, signatures and compiler options of the kernels."""
        stack, loss = self.stack, self.stack.kernels
        names = [*STEP_FILES, loss.source, *ORDER_FILES, "cuda/many/many.cuh"]
        signatures = {**_SIGNATURES, loss.step: "PPPiiifPP", loss.metrics: "PPPiiiP"}
        options = [
            f"-D{self.precision.macro}",
            f"-DACTIVATION={stack.activation_number}",
            f"-DDROPOUT={int(stack.drops)}",
            f"-DOPTIMIZER={optimizer_number(self.recipe)}",
            f"-DMASTER={master_kind}",
            "-DGRADIENT",
        ]
        return stack.functions() + kernel_source(*names), signatures, options


class ManyBuffers(Buffers):
    """Memory of a step of ``rows`` rows of each network."""

    def __init__(self, memory: Memory, plan: ManyPlan, rows: int) -> None:
        super().__init__(memory, plan, plan.count * rows, 1)
        self.rows = rows
        what = f"a minibatch of {rows:,} rows of {plan.count} networks"
        self.partials = [
            memory.allocate(4 * PARTS * plan.count * width, what) for width in plan.layout.sizes[1:]
        ]
        self.loss = memory.allocate(4 * LOSS_PARTS * plan.count, what)


class ManyGemms(Gemms):
    """Products of all networks at once."""

    def __init__(self, device: Device, plan: ManyPlan, *, tune: bool) -> None:
        super().__init__(device, plan.precision, tune=tune)
        self._count = plan.count

    def ready(
        self, product: Product, workspace: tuple[int, int], stream: Any, *, shared_b: bool = False
    ) -> Gemm:
        """See :class:`Gemms`; with ``shared_b`` all networks have the same inputs."""
        many = replace(product, networks=self._count, shared_b=shared_b)
        return super().ready(many, workspace, stream)


def drawn(orders: Sequence[tuple[int, int]]) -> Any:
    """Return (seed, epoch) of each network for ``draw_many``."""
    return np.array(orders, dtype=np.uint64)
