"""The operations of expressions, in CUDA C++ and in numpy, and functions that apply them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pycuda_nn.expression.nodes import Applied, Expression


@dataclass(frozen=True)
class Operation:
    """An operation in CUDA C++ and in numpy."""

    text: str
    twin: Callable[..., Any]


_ONE, _ZERO = np.float32(1), np.float32(0)


def _where(condition: Any, a: Any, b: Any) -> Any:
    return np.where(condition != 0, a, b)


def _erf(x: Any) -> Any:
    from scipy.special import erf  # slow to import

    return erf(x)


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


OPERATIONS = {
    "add": Operation("{0} + {1}", np.add),
    "sub": Operation("{0} - {1}", np.subtract),
    "mul": Operation("{0} * {1}", np.multiply),
    "div": Operation("{0} / {1}", np.divide),
    "neg": Operation("-{0}", np.negative),
    "pow": Operation("powf({0}, {1})", np.power),
    "exp": Operation("expf({0})", np.exp),
    "expm1": Operation("expm1f({0})", np.expm1),
    "ln": Operation("logf({0})", np.log),
    "log1p": Operation("log1pf({0})", np.log1p),
    "sqr": Operation("{0} * {0}", np.square),
    "sqrt": Operation("sqrtf({0})", np.sqrt),
    "absolute": Operation("fabsf({0})", np.abs),
    "sin": Operation("sinf({0})", np.sin),
    "cos": Operation("cosf({0})", np.cos),
    "erf": Operation("erff({0})", _erf),
    "tanh": Operation("tanhf({0})", np.tanh),
    "sigmoid": Operation("1.0f / (1.0f + expf(-{0}))", lambda x: 1 / (1 + np.exp(-x))),
    "softplus": Operation("fmaxf({0}, 0.0f) + log1pf(expf(-fabsf({0})))", _softplus),
    "relu": Operation("{0} < 0.0f ? 0.0f : {0}", lambda x: np.maximum(x, x.dtype.type(0))),
    # NaN in either operand stays NaN, as in numpy.
    "maximum": Operation("{1} != {1} || {0} < {1} ? {1} : {0}", np.maximum),
    "minimum": Operation("{1} != {1} || {1} < {0} ? {1} : {0}", np.minimum),
    "less": Operation("{0} < {1} ? 1.0f : 0.0f", lambda a, b: np.where(a < b, _ONE, _ZERO)),
    "at_most": Operation("{0} <= {1} ? 1.0f : 0.0f", lambda a, b: np.where(a <= b, _ONE, _ZERO)),
    "sign": Operation("({0} > 0.0f) - ({0} < 0.0f)", np.sign),
    "where": Operation("{0} != 0.0f ? {1} : {2}", _where),
    # The product of an adjoint and a slope: 0 where the adjoint is 0, even if the slope is not
    # finite, as in the branch of ``where`` that was not chosen.
    "chain": Operation(
        "{0} == 0.0f ? 0.0f : {0} * {1}", lambda bar, slope: np.where(bar == 0, 0, bar * slope)
    ),
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


def expm1(x: Expression) -> Expression:
    """Return exp(x) - 1, accurate near 0."""
    return Applied("expm1", x)


def ln(x: Expression) -> Expression:
    """Return the natural logarithm of x: NaN below 0."""
    return Applied("ln", x)


def log1p(x: Expression) -> Expression:
    """Return ln(1 + x), accurate near 0."""
    return Applied("log1p", x)


def sqr(x: Expression) -> Expression:
    """Return x x."""
    return Applied("sqr", x)


def sqrt(x: Expression) -> Expression:
    """Return the square root of x: NaN below 0."""
    return Applied("sqrt", x)


def absolute(x: Expression) -> Expression:
    """Return |x|."""
    return Applied("absolute", x)


def sin(x: Expression) -> Expression:
    """Return the sine of x."""
    return Applied("sin", x)


def cos(x: Expression) -> Expression:
    """Return the cosine of x."""
    return Applied("cos", x)


def erf(x: Expression) -> Expression:
    """Return the error function of x."""
    return Applied("erf", x)


def sigmoid(x: Expression) -> Expression:
    """Return 1 / (1 + exp(-x))."""
    return Applied("sigmoid", x)


def softplus(x: Expression) -> Expression:
    """Return ln(1 + exp(x)), which cannot overflow."""
    return Applied("softplus", x)


def tanh(x: Expression) -> Expression:
    """Return the hyperbolic tangent of x."""
    return Applied("tanh", x)


def relu(x: Expression) -> Expression:
    """Return max(x, 0); NaN stays NaN."""
    return Applied("relu", x)


def maximum(a: Expression | float, b: Expression | float) -> Expression:
    """Return the larger one; NaN if one is NaN."""
    return Applied("maximum", a, b)


def minimum(a: Expression | float, b: Expression | float) -> Expression:
    """Return the smaller one; NaN if one is NaN."""
    return Applied("minimum", a, b)


def where(condition: Expression, a: Expression | float, b: Expression | float) -> Expression:
    """Return ``a`` where ``condition``, such as ``x < 0``, is not 0, else ``b``."""
    return Applied("where", condition, a, b)


def threshold(
    x: Expression, level: Expression | float, value: Expression | float | None = None
) -> Expression:
    """Return ``value`` (default: ``level``) where x < level, else x; NaN stays NaN."""
    return Applied("threshold", x, level, level if value is None else value)


def sigmoid_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta sigmoid'(z) = delta a (1 - a), given a = sigmoid(z)."""
    return Applied("sigmoid_grad", delta, a)


def tanh_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta tanh'(z) = delta (1 - a a), given a = tanh(z)."""
    return Applied("tanh_grad", delta, a)


def relu_grad(delta: Expression, a: Expression) -> Expression:
    """Return delta where a > 0, else 0, given a = relu(z)."""
    return Applied("relu_grad", delta, a)
