"""Expressions of elementwise operations, built with Python's operators and named functions.

::

    x = Input("x")
    softplus = ln(exp(x * 0.5 + 0.25) + 1.0)

:mod:`pycuda_nn.cuda.elementwise.program` turns an expression into one fused kernel, and also
computes it in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from pycuda_nn.errors import ShapeError


class Expression:
    """A float32 value per element, computed from inputs and numbers by operators and functions."""

    operands: tuple[Expression, ...] = ()
    __array_ufunc__: ClassVar[None] = None  # numpy scalars then use the operators of this class

    def __add__(self, other: Expression | float) -> Expression:
        return Applied("add", self, other)

    def __radd__(self, other: float) -> Expression:
        return Applied("add", other, self)

    def __sub__(self, other: Expression | float) -> Expression:
        return Applied("sub", self, other)

    def __rsub__(self, other: float) -> Expression:
        return Applied("sub", other, self)

    def __mul__(self, other: Expression | float) -> Expression:
        return Applied("mul", self, other)

    def __rmul__(self, other: float) -> Expression:
        return Applied("mul", other, self)

    def __truediv__(self, other: Expression | float) -> Expression:
        return Applied("div", self, other)

    def __rtruediv__(self, other: float) -> Expression:
        return Applied("div", other, self)

    def __neg__(self) -> Expression:
        return Applied("neg", self)

    def __abs__(self) -> Expression:
        return Applied("absolute", self)


class Input(Expression):
    """An array that is passed at the launch of the kernel."""

    def __init__(self, name: str) -> None:
        self.name = name


class Scalar(Expression):
    """A number that is passed at the launch of the kernel: by ``name``, or ``value`` itself."""

    def __init__(self, name: str = "", value: float | None = None) -> None:
        self.name, self.value = name, value


class Applied(Expression):
    """An operation of :data:`OPERATIONS` on its operands; a number becomes a scalar."""

    def __init__(self, operation: str, *operands: Expression | float) -> None:
        self.operation = operation
        self.operands = tuple(_term(operation, operand) for operand in operands)


def _term(operation: str, operand: object) -> Expression:
    if isinstance(operand, Expression):
        return operand
    if isinstance(operand, Real):
        return Scalar(value=float(operand))
    kind = type(operand).__name__
    raise ShapeError(
        f"{operation}: invalid operand of type {kind}", "Use an expression or a real number."
    )


@dataclass(frozen=True)
class Operation:
    """An operation in CUDA C++ and in numpy."""

    text: str
    twin: Callable[..., Any]


OPERATIONS = {
    "add": Operation("{0} + {1}", np.add),
    "sub": Operation("{0} - {1}", np.subtract),
    "mul": Operation("{0} * {1}", np.multiply),
    "div": Operation("{0} / {1}", np.divide),
    "neg": Operation("-{0}", np.negative),
    "exp": Operation("expf({0})", np.exp),
    "ln": Operation("logf({0})", np.log),
    "sqr": Operation("{0} * {0}", np.square),
    "sqrt": Operation("sqrtf({0})", np.sqrt),
    "absolute": Operation("fabsf({0})", np.abs),
    "tanh": Operation("tanhf({0})", np.tanh),
    "sigmoid": Operation("1.0f / (1.0f + expf(-{0}))", lambda x: 1 / (1 + np.exp(-x))),
    "relu": Operation("{0} < 0.0f ? 0.0f : {0}", lambda x: np.maximum(x, x.dtype.type(0))),
    "threshold": Operation(
        "{0} < {1} ? {2} : {0}", lambda x, level, value: np.where(x < level, value, x)
    ),
    "sigmoid_grad": Operation("{0} * ({1} * (1.0f - {1}))", lambda d, a: d * (a * (1 - a))),
    "tanh_grad": Operation("{0} * (1.0f - {1} * {1})", lambda d, a: d * (1 - a * a)),
    "relu_grad": Operation(
        "{1} > 0.0f ? {0} : 0.0f", lambda d, a: np.where(a > 0, d, d.dtype.type(0))
    ),
}


def exp(x: Expression) -> Expression:
    """Return e to the power of x."""
    return Applied("exp", x)


def ln(x: Expression) -> Expression:
    """Return the natural logarithm of x: NaN below 0."""
    return Applied("ln", x)


def sqr(x: Expression) -> Expression:
    """Return x x."""
    return Applied("sqr", x)


def sqrt(x: Expression) -> Expression:
    """Return the square root of x: NaN below 0."""
    return Applied("sqrt", x)


def absolute(x: Expression) -> Expression:
    """Return |x|."""
    return Applied("absolute", x)


def threshold(
    x: Expression, level: Expression | float, value: Expression | float | None = None
) -> Expression:
    """Return ``value`` (default: ``level``) where x < level, else x; NaN stays NaN."""
    return Applied("threshold", x, level, level if value is None else value)


def sigmoid(x: Expression) -> Expression:
    """Return 1 / (1 + exp(-x))."""
    return Applied("sigmoid", x)


def tanh(x: Expression) -> Expression:
    """Return the hyperbolic tangent of x."""
    return Applied("tanh", x)


def relu(x: Expression) -> Expression:
    """Return max(x, 0); NaN stays NaN."""
    return Applied("relu", x)


def sigmoid_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta sigmoid'(z) = delta a (1 - a), given a = sigmoid(z)."""
    return Applied("sigmoid_grad", delta, a)


def tanh_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta tanh'(z) = delta (1 - a a), given a = tanh(z)."""
    return Applied("tanh_grad", delta, a)


def relu_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta where a > 0, else 0, given a = relu(z)."""
    return Applied("relu_grad", delta, a)


_X, _Y, _A, _DELTA = Input("x"), Input("y"), Input("a"), Input("delta")

SINGLE: dict[str, Expression] = {
    "mulc": _X * Scalar("c"),
    "addc": _X + Scalar("c"),
    "mul": _X * _Y,
    "add": _X + _Y,
    "sub": _X - _Y,
    "exp": exp(_X),
    "ln": ln(_X),
    "sqr": sqr(_X),
    "sqrt": sqrt(_X),
    "absolute": absolute(_X),
    "threshold": threshold(_X, Scalar("level"), Scalar("value")),
    "sigmoid": sigmoid(_X),
    "tanh": tanh(_X),
    "relu": relu(_X),
    "sigmoid_grad": sigmoid_grad(_DELTA, _A),
    "tanh_grad": tanh_grad(_DELTA, _A),
    "relu_grad": relu_grad(_DELTA, _A),
}
