"""Plan of a group: one network shape, and the recipe of each network."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import Product
from pycuda_nn.cuda.many.layout import ManyLayout
from pycuda_nn.cuda.many.sources import FUSED_FILES, HEAD_FILES, MANY_FILES
from pycuda_nn.cuda.many.structs import (
    NET,
    ManyActivation,
    ManyBiases,
    ManyProduct,
    ManyUpdate,
    ManyWeights,
)
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device, Facts, Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Biases, Head
from pycuda_nn.cuda.step import head
from pycuda_nn.cuda.step.buffers import LOSS_PARTS, PARTS, Buffers
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.sources import ORDER_FILES, ORDER_SIGNATURES, STEP_FILES
from pycuda_nn.cuda.step.weights import hyper_scalars
from pycuda_nn.layers import Dropout
from pycuda_nn.protocols import TrainingRecipe

_SIGNATURES: dict[str, Any] = {
    "gather_many": "PPPPiiiiiiPP",
    "convert": "PqiiP",
    "tick_many": "Pii",
    "noise": "Pq",
    "round_weights": "PiP",
    "bias_activation_many": ManyActivation,
    "activation_grad_many": ManyActivation,
    "update_many": ManyUpdate,
    "biases": Biases,  # of one network, after built-in products
    "copy_params": "PPiiiP",
    **ORDER_SIGNATURES,
}
_FUSED_SIGNATURES: dict[str, Any] = {
    "forward_many": ManyProduct,
    "gradient_many": ManyProduct,
    "weights_many": ManyWeights,
    "biases_many": ManyBiases,
}
_FUSED_CAPABILITY = (8, 0)  # bfloat16 in tensor cores, asynchronous copies
_CHUNK, _COLUMNS, _WEIGHT_ROWS, _WEIGHT_STAGES = 64, 64, 128, 3  # as in fused.cuh
_STAGES = range(3, 6)  # of the other products
_RESERVED_BYTES = 1 << 10  # of shared memory, by the driver for each block
_SUMS_BYTES = 8 << 10  # of shared memory, for the column sums of gradient_many


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
        """Whether the last layer and its loss are one kernel in the captured step: never."""
        return False

    @property
    def has_head(self) -> bool:
        """Whether they are one kernel in the fused step, with the gradient of the layer below."""
        return not self.stack.drops and head.fits(self.stack, self.precision.item_bytes)

    def fuses(self, facts: Facts) -> bool:
        """Whether the products of a step have kernels in fused.cuh."""
        capable = facts.compute_capability >= _FUSED_CAPABILITY
        return capable and self.precision.item_bytes == 2

    @property
    def tile_rows(self) -> int:
        """Rows of a block of these kernels."""
        return 64 if self.recipe.batch_size <= 64 else 128

    def most_parts(self, rows: int) -> int:
        """Return the most column sums of a gradient of this number of rows, on any path."""
        return max(PARTS, -(-rows // self.tile_rows))

    def module(self, device: Device, master_kind: int) -> Module:
        """Return the kernels, loaded on the active device."""
        stages = self.stages_on(device.facts)
        source, signatures, options = self.program(master_kind, stages=stages)
        module = Module(device, source, signatures, options)
        if stages:
            module.reserve("weights_many", _stages_bytes(_WEIGHT_STAGES, _WEIGHT_ROWS))
            for name in ("forward_many", "gradient_many"):
                module.reserve(name, _stages_bytes(stages, self.tile_rows))
        return module

    def code(self, facts: Facts, master_kind: int) -> str:
        """See :class:`TrainingPlan`."""
        source, _, options = self.program(master_kind, stages=self.stages_on(facts))
        return cache.key(source, *options)

    def stages_on(self, facts: Facts) -> int:
        """Return the stages of a product on a GPU; 0 if its products have no kernels."""
        return self.stages(facts) if self.fuses(facts) else 0

    def stages(self, facts: Facts) -> int:
        """Return the stages of a product of rows: two of its blocks fit on a multiprocessor."""
        room = (facts.shared_bytes + _RESERVED_BYTES) // 2 - _RESERVED_BYTES - _SUMS_BYTES
        fits = [n for n in _STAGES if _stages_bytes(n, self.tile_rows) <= room]
        return max(fits, default=_STAGES[0])

    def program(
        self, master_kind: int, *, stages: int = 0
    ) -> tuple[str, dict[str, Any], list[str]]:
        """Return source, signatures and compiler options of the kernels.

        Args:
            master_kind: ``MASTER`` of update.cuh.
            stages: ``MANY_STAGES`` of fused.cuh; 0 without the kernels there.
        """
        stack, loss = self.stack, self.stack.kernels
        names = [*STEP_FILES, loss.source, *ORDER_FILES]
        names += [*MANY_FILES, *(FUSED_FILES if stages else ())]
        signatures = {**_SIGNATURES, loss.step: "PPPiiifPP", loss.metrics: "PPPiiiP"}
        signatures |= _FUSED_SIGNATURES if stages else {}
        options = [
            *self.options(master_kind),
            "-DGRADIENT",
            f"-DMANY_ROWS={self.tile_rows}",
            f"-DMANY_STAGES={stages}",
        ]
        if stages and self.has_head:
            names += HEAD_FILES
            signatures["head_many"] = Head
            width, classes = self.layout.sizes[-2], stack.sizes[-1]
            options += [f"-DHEAD_WIDTH={width}", f"-DHEAD_CLASSES={classes}"]
        return stack.functions() + kernel_source(*names), signatures, options


def _stages_bytes(stages: int, rows: int) -> int:
    return 2 * stages * _CHUNK * (rows + _COLUMNS)


class ManyBuffers(Buffers):
    """Memory of a step of ``rows`` rows of each network."""

    def __init__(self, memory: Memory, plan: ManyPlan, rows: int) -> None:
        super().__init__(memory, plan, plan.count * rows, 1)
        self.rows = rows
        what = f"a minibatch of {rows:,} rows of {plan.count} networks"
        parts = plan.most_parts(rows)
        self.partials = [
            memory.allocate(4 * parts * plan.count * width, what) for width in plan.layout.sizes[1:]
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


def nets(recipes: Sequence[TrainingRecipe], dropouts: Sequence[Dropout]) -> npt.NDArray[Any]:
    """Return the settings of each network for the kernels."""
    out = np.zeros(len(recipes), dtype=NET)
    for row, recipe, dropout in zip(out, recipes, dropouts, strict=True):
        for name, value in hyper_scalars(recipe).items():
            row[name] = value
        row["seed"], row["threshold"], row["scale"] = recipe.seed, dropout.threshold, dropout.scale
    return out
