"""The expressions with one operation, by name; and the source of the kernels of an expression."""

from __future__ import annotations

from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.expression import Expression, Input, Program, Scalar
from pycuda_nn.expression.operations import (
    absolute,
    exp,
    ln,
    relu,
    relu_grad,
    sigmoid,
    sigmoid_grad,
    sqr,
    sqrt,
    tanh,
    tanh_grad,
    threshold,
)

# Quotients and roots are exact to 2 and 1 units in the last place. The exact operations branch for
# each element: sqrt then reached 3.1 of the 4.1 TB/s of an H200.
OPTIONS = ("--prec-div=false", "--prec-sqrt=false")

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


def source_of(program: Program) -> str:
    """Return the CUDA C++ source of the kernels of an expression, without its numbers."""
    return program.function() + kernel_source("cuda/elementwise/elementwise.cuh")
