"""Plan of a session: the network, its recipe and precision, and their kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.runtime import cache
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device, Facts
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.cuda.runtime.structs import Activation, Biases, Head, Update
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.cuda.step import head
from pycuda_nn.cuda.step.sources import (
    DATA_GRAD_FILES,
    HEAD_FILES,
    ORDER_FILES,
    ORDER_SIGNATURES,
    STEP_FILES,
)
from pycuda_nn.cuda.step.tilings import TILINGS
from pycuda_nn.cuda.step.weights import optimizer_number
from pycuda_nn.protocols import TrainingRecipe

_LOSS, _METRICS = "PPPiiifPP", "PPPiiiP"  # arguments of the two kernels of a loss
_SIGNATURES: dict[str, Any] = {
    "gather": "PPPPiiiiiPP",
    "convert": "PqiiP",
    "tick": "Pi",
    "noise": "Pq",
    "round_weights": "PiP",
    "bias_activation": Activation,
    "activation_grad": Activation,
    "update": Update,
    "biases": Biases,
    **ORDER_SIGNATURES,
}


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A network, its training recipe and its precision."""

    stack: DenseStack
    recipe: TrainingRecipe
    precision: Precision

    @property
    def layout(self) -> ParameterLayout:
        """Layout of the parameters."""
        return ParameterLayout(self.stack.network)

    @property
    def pack(self) -> int:
        """Elements of an access of 16 bytes."""
        return 16 // self.precision.item_bytes

    @property
    def relu_in_product(self) -> bool:
        """Whether the matrix product adds the bias and applies the activation."""
        return self.stack.activation == "relu" and not self.stack.drops

    @property
    def fused_head(self) -> bool:
        """Whether the last layer and its loss are one kernel."""
        return head.fits(self.stack, self.precision.item_bytes)

    def target_words(self) -> int:
        """Return the number of 32-bit words of the target of a row."""
        return 1 if self.stack.loss.of_classes else self.stack.sizes[-1]

    def options(self, master_kind: int) -> list[str]:
        """Return the compiler options of the kernels of a step; the first is that of the type."""
        return [
            f"-D{self.precision.macro}",
            f"-DACTIVATION={self.stack.activation_number}",
            f"-DDROPOUT={int(self.stack.drops)}",
            f"-DOPTIMIZER={optimizer_number(self.recipe)}",
            f"-DMASTER={master_kind}",
        ]

    def program(self, master_kind: int) -> tuple[str, dict[str, Any], list[str]]:
        """Return source, signatures and compiler options of the kernels.

        Args:
            master_kind: ``MASTER`` of update.cuh.
        """
        stack, loss = self.stack, self.stack.kernels
        names = [*STEP_FILES, loss.source, *ORDER_FILES]
        signatures = {**_SIGNATURES, loss.step: _LOSS, loss.metrics: _METRICS}
        options = self.options(master_kind)
        if self.fused_head:
            names += HEAD_FILES
            signatures["head"] = Head
            options += [
                f"-DHEAD_WIDTH={self.layout.sizes[-2]}",
                f"-DHEAD_CLASSES={stack.sizes[-1]}",
            ]
        return stack.functions() + kernel_source(*names), signatures, options

    def module(self, device: Device, master_kind: int) -> Module:
        """Return the kernels of steps, evaluation and order, loaded on the active device."""
        source, signatures, options = self.program(master_kind)
        return Module(device, source, signatures, options)

    def code(self, facts: Facts, master_kind: int) -> str:
        """Return an identifier of this version of the kernels on a GPU, for cached choices."""
        source, _, options = self.program(master_kind)
        return cache.key(source, *options, kernel_source(*DATA_GRAD_FILES), repr(TILINGS))
