"""Activations: relu, tanh and sigmoid, and formulas, elementwise.

``activation.cuh`` has the GPU versions. The captured step applies them in the kernel that adds the
bias, and relu in the matrix product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pycuda_nn.errors import ConfigError
from pycuda_nn.layers.base import Array, Bits, Layer, Parameters
from pycuda_nn.layers.formulas import NAMED, Formula, activation_formula, activation_problem
from pycuda_nn.layers.memory import Memory


def relu(z: Array, out: Array) -> None:
    """Fill ``out`` with max(z, 0)."""
    np.maximum(z, 0.0, out=out)


def tanh(z: Array, out: Array) -> None:
    """Fill ``out`` with the hyperbolic tangent of z."""
    np.tanh(z, out=out)


def sigmoid(z: Array, out: Array) -> None:
    """Fill ``out`` with 1 / (1 + exp(-z)), computed from tanh(z / 2), which cannot overflow."""
    np.multiply(z, 0.5, out=out)
    np.tanh(out, out=out)
    out += 1.0
    out *= 0.5


def relu_grad(delta: Array, a: Array, memory: Memory) -> None:
    """Multiply ``delta`` by relu'(z), given a = relu(z)."""
    mask = memory.array("mask", a.shape, np.bool_)
    np.greater(a, 0.0, out=mask)
    np.multiply(delta, mask, out=delta)


def tanh_grad(delta: Array, a: Array, memory: Memory) -> None:
    """Multiply ``delta`` by tanh'(z) = 1 - a**2, given a = tanh(z)."""
    tmp = memory.array("tmp", a.shape)
    np.multiply(a, a, out=tmp)
    np.subtract(1.0, tmp, out=tmp)
    np.multiply(delta, tmp, out=delta)


def sigmoid_grad(delta: Array, a: Array, memory: Memory) -> None:
    """Multiply ``delta`` by sigmoid'(z) = a (1 - a), given a = sigmoid(z)."""
    tmp = memory.array("tmp", a.shape)
    np.subtract(1.0, a, out=tmp)
    np.multiply(tmp, a, out=tmp)
    np.multiply(delta, tmp, out=delta)


@dataclass(frozen=True, kw_only=True)
class Function:
    """An activation function.

    Attributes:
        forward: ``f(z, out)``; ``out`` can be ``z``.
        gradient: ``g(delta, a, memory)`` multiplies ``delta`` by the slope in place; a = f(z).
        kernel_number: ``ACTIVATION`` of ``activation.cuh``; None for numpy only.
    """

    forward: Callable[[Array, Array], None]
    gradient: Callable[[Array, Array, Memory], None]
    kernel_number: int | None = None


ACTIVATIONS = {
    "relu": Function(forward=relu, gradient=relu_grad, kernel_number=0),
    "tanh": Function(forward=tanh, gradient=tanh_grad, kernel_number=1),
    "sigmoid": Function(forward=sigmoid, gradient=sigmoid_grad, kernel_number=2),
}


OWN = 3
"""``ACTIVATION`` of ``activation.cuh`` for a formula."""


def names() -> tuple[str, ...]:
    """Return the names of all activations; others are formulas."""
    return (*ACTIVATIONS, *NAMED)


@dataclass(frozen=True)
class Activation(Layer):
    """An activation of :func:`names`, or a formula of ``x``.

    Example:
        >>> import numpy as np
        >>> from pycuda_nn.layers import Activation, Memory
        >>> Activation("relu").forward(np.array([[-1.0, 2.0]]), (), Memory(float), None)
        array([[0., 2.]])
        >>> Activation("max(x, 0)").forward(np.array([[-1.0, 2.0]]), (), Memory(float), None)
        array([[0., 2.]])
    """

    name: str

    def __post_init__(self) -> None:
        if problem := activation_problem(self.name, names()):
            raise ConfigError(f"activation = {self.name!r}: {problem}")

    @property
    def formula(self) -> Formula | None:
        """The formula; None for relu, tanh and sigmoid, whose slope follows from their value."""
        return None if self.name in ACTIVATIONS else activation_formula(self.name)

    @property
    def kernel_number(self) -> int | None:
        """``ACTIVATION`` of ``activation.cuh``; None for numpy only."""
        return ACTIVATIONS[self.name].kernel_number if self.name in ACTIVATIONS else OWN

    def forward(self, x: Array, params: Parameters, memory: Memory, bits: Bits | None) -> Array:
        """Return f(x)."""
        if (formula := self.formula) is not None:
            memory.kept["x"] = x
            a = memory.array("output", x.shape)
            np.copyto(a, formula.value.evaluate(x=x))
            return a
        a = memory.kept["a"] = memory.output_like(x)
        ACTIVATIONS[self.name].forward(x, a)
        return a

    def backward(
        self, delta: Array, params: Parameters, grads: Parameters, memory: Memory, *, needed: bool
    ) -> Array:
        """Return delta f'(x), in place."""
        if (formula := self.formula) is not None:
            return np.multiply(delta, formula.slope.evaluate(x=memory.kept["x"]), out=delta)
        ACTIVATIONS[self.name].gradient(delta, memory.kept["a"], memory)
        return delta
