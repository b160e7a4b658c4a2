"""Expressions of elementwise operations: their text, derivative, numpy twin and CUDA source.

Activations and losses of the user, and the fused kernels of ``cuda/elementwise``, are expressions.

>>> from pycuda_nn.expression import derivative, parse, program
>>> x_squared = parse("x ** 2 / 2", ["x"])
>>> import numpy as np
>>> program(derivative(x_squared, "x"), inputs=["x"]).evaluate(x=np.array([3.0]))
array([3.])
"""

from pycuda_nn.expression.derivative import derivative
from pycuda_nn.expression.nodes import Applied, Expression, Input, Scalar
from pycuda_nn.expression.parse import parse
from pycuda_nn.expression.program import Program, program
from pycuda_nn.expression.text import text_of, traced

__all__ = [
    "Applied",
    "Expression",
    "Input",
    "Program",
    "Scalar",
    "derivative",
    "parse",
    "program",
    "text_of",
    "traced",
]
