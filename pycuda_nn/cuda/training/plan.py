"""What a session is made of: the network, how it computes, and the kernels for both."""

from __future__ import annotations

from dataclasses import dataclass

from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.precision import Precision
from pycuda_nn.cuda.runtime.structs import Activation, Head, Update
from pycuda_nn.cuda.training import head
from pycuda_nn.cuda.training.weights import optimizer_number
from pycuda_nn.network import Network
from pycuda_nn.protocols import TrainingRecipe

_ACTIVATION = {"relu": 0, "tanh": 1, "sigmoid": 2}
LOSS_KERNEL = {"softmax": "softmax_xent", "logistic": "logistic_xent", "squared": "squared_error"}
METRICS_KERNEL = {
    "softmax": "softmax_metrics",
    "logistic": "logistic_metrics",
    "squared": "squared_metrics",
}
_SIGNATURES = {
    "gather": "PPPPiiiiiPP",
    "convert": "PqiiP",
    "tick": "Pi",
    "noise": "Pq",
    "round_weights": "PiP",
    "bias_activation": Activation,
    "activation_grad": Activation,
    **dict.fromkeys(LOSS_KERNEL.values(), "PPPiiifPP"),
    **dict.fromkeys(METRICS_KERNEL.values(), "PPPiiiP"),
    "update": Update,
    "draw": "PPiiQQQ",
    "merge_pass": "PPiii",
    "merge_tile": "PPiii",
}


@dataclass(frozen=True, kw_only=True)
class TrainingPlan:
    """A network, how it is trained, and in which precision."""

    network: Network
    recipe: TrainingRecipe
    precision: Precision

    @property
    def layout(self) -> ParameterLayout:
        """Where its parameters lie."""
        return ParameterLayout(self.network)

    @property
    def pack(self) -> int:
        """Elements of an access of 16 bytes."""
        return 16 // self.precision.item_bytes

    @property
    def relu_in_product(self) -> bool:
        """Whether the product itself adds the bias and applies the activation."""
        return self.network.activation == "relu" and self.recipe.dropout == 0

    @property
    def fused_head(self) -> bool:
        """Whether the last layer and its loss are one kernel."""
        return head.fits(self.network, self.recipe, self.precision.item_bytes)

    def target_words(self) -> int:
        """Return how many 32-bit words the target of a row takes."""
        return self.network.sizes[-1] if self.network.loss == "squared" else 1

    def module(self, device: Device, master_kind: int) -> Module:
        """Return the kernels of a step, of evaluation and of the order, on the active device."""
        names = [
            "runtime/common.cuh",
            "training/step.cuh",
            "training/metrics.cuh",
            "training/order.cuh",
        ]
        signatures = dict(_SIGNATURES)
        options = [
            f"-D{self.precision.macro}",
            f"-DACTIVATION={_ACTIVATION[self.network.activation]}",
            f"-DDROPOUT={int(self.recipe.dropout > 0)}",
            f"-DOPTIMIZER={optimizer_number(self.recipe)}",
            f"-DMASTER={master_kind}",
        ]
        if self.fused_head:
            names.append("training/head.cuh")
            signatures["head"] = Head
            options += [
                f"-DHEAD_WIDTH={self.layout.sizes[-2]}",
                f"-DHEAD_CLASSES={self.network.sizes[-1]}",
            ]
        return Module(device, kernel_source(*names), signatures, options)
