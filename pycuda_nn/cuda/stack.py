"""Check whether the kernels can train a network: uniform dense layers and a loss with kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

from pycuda_nn.layers import Activation, Dense, Dropout, Layer, Loss, LossKernels
from pycuda_nn.layers.activation import OWN
from pycuda_nn.network import Network


@dataclass(frozen=True)
class NotCovered:
    """The kernels do not support a training; ``reason`` names the cause."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class DenseStack:
    """Dense layers; the same activation and the same dropout follow each of them but the last.

    Attributes:
        network: The network.
        sizes: Widths from the input to the output.
        activation: Name or formula.
        activation_number: ``ACTIVATION`` of ``layers/activation.cuh``.
        dropout: Dropout after each activation; its probability is 0 for a network without dropout.
        kernels: Kernels of the loss.
    """

    network: Network
    sizes: tuple[int, ...]
    activation: str
    activation_number: int
    dropout: Dropout
    kernels: LossKernels

    @property
    def loss(self) -> Loss:
        """Loss of the network."""
        return self.network.loss

    @property
    def drops(self) -> bool:
        """Whether the network uses dropout."""
        return self.dropout.probability > 0

    @property
    def keeps_z(self) -> bool:
        """Whether the slope of the activation is computed from its input z: for a formula."""
        return self.activation_number == OWN

    def functions(self) -> str:
        """Return the CUDA source of the formulas of activation and loss."""
        formula = Activation(self.activation).formula
        return (formula.functions("own_activation") if formula else "") + self.loss.functions()

    def __str__(self) -> str:
        count, outputs = len(self.sizes) - 1, self.sizes[-1]
        layers = "1 dense layer" if count == 1 else f"{count} dense layers"
        kinds = {"softmax": f"{outputs} classes", "logistic": "2 classes"}
        return f"{layers}, {self.loss.label} of {kinds.get(self.loss.name, f'{outputs} outputs')}"


def recognise(network: Network) -> DenseStack | NotCovered:
    """Return ``network`` as a stack for the captured step, or why the step does not support it."""
    dense = [layer for layer in network.layers if isinstance(layer, Dense)]
    activation = _first(Activation, network.layers) or Activation("relu")
    dropout = _first(Dropout, network.layers)
    expected: list[Layer] = []
    for layer in dense:
        between = [activation, *([dropout] if dropout else [])]
        expected += [*(between if expected else []), layer]
    reason = _difference(network.layers, expected)
    number = activation.kernel_number
    if reason is not None:
        return NotCovered(reason)
    if number is None:
        return NotCovered(f"the activation '{activation.name}' has no kernels")
    if network.loss.kernels is None:
        return NotCovered(f"the loss '{network.loss.label}' has no kernels")
    return DenseStack(
        network=network,
        sizes=(network.inputs, *(layer.fan_out for layer in dense)),
        activation=activation.name,
        activation_number=number,
        dropout=dropout or Dropout(0.0),
        kernels=network.loss.kernels,
    )


Kind = TypeVar("Kind", bound=Layer)


def _first(kind: type[Kind], layers: Sequence[Layer]) -> Kind | None:
    return next((layer for layer in layers if isinstance(layer, kind)), None)


def _difference(layers: Sequence[Layer], expected: Sequence[Layer]) -> str | None:
    """Return why a layer differs from the expected layer, for the first such layer, or None."""
    for number, layer in enumerate(layers, start=1):
        if type(layer) not in (Dense, Activation, Dropout):
            return f"layer {number}, {layer}, has no kernels"
    for number, (layer, other) in enumerate(zip_longest(layers, expected), start=1):
        if layer != other:
            here = f"layer {number} is {layer}" if layer else f"there is no layer {number}"
            wanted = f"expected {other}" if other else "after the last dense layer"
            return f"{here}, {wanted}: all hidden layers must be equal"
    return None
