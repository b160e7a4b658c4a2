"""An expression in the order of its computation: source of its kernel, and evaluation in numpy.

A number becomes an argument of the kernel: another number needs no compilation. Expressions of the
same structure have the same source, regardless of their names and numbers. This module does not
need a GPU or PyCUDA.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import ShapeError
from pycuda_nn.expression.nodes import Applied, Expression, Input, Scalar, in_order
from pycuda_nn.expression.operations import OPERATIONS

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class ProgramStep:
    """An operation on values that were computed before; each value is named by its code."""

    operation: str
    operands: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Program:
    """An expression in the order of its computation.

    Codes of values: x0, x1, ... are inputs, s0, s1, ... scalars, v0, v1, ... steps.

    Attributes:
        inputs: Names, in the order of their first use.
        scalars: In the order of their first use; each number in the expression is a scalar.
        result: Code of the value of the whole expression.
    """

    inputs: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    steps: tuple[ProgramStep, ...]
    result: str

    @property
    def structure(self) -> tuple[int, int, tuple[ProgramStep, ...], str]:
        """Identity of the kernel, which depends neither on names nor on numbers."""
        return len(self.inputs), len(self.scalars), self.steps, self.result

    def function(self) -> str:
        """Return the source of ``value``, which the kernels call for each element."""
        lines = [
            f"#define INPUTS {len(self.inputs)}",
            f"#define SCALARS {max(1, len(self.scalars))}",
            "__device__ __forceinline__ float value(const float* x, const float* s) {",
        ]
        lines += [f"  const float x{i} = x[{i}];" for i in range(len(self.inputs))]
        lines += [f"  const float s{i} = s[{i}];" for i in range(len(self.scalars))]
        return self._body(lines)

    def device_function(self, name: str) -> str:
        """Return the source of a device function of the inputs, with its numbers."""
        inputs = ", ".join(f"float x{i}" for i in range(len(self.inputs)))
        lines = [f"__device__ __forceinline__ float {name}({inputs}) {{"]
        for i, number in enumerate(self.numbers({})):
            lines.append(f"  const float s{i} = {number.hex()}f;")
        return self._body(lines)

    def _body(self, lines: list[str]) -> str:
        for i, step in enumerate(self.steps):
            text = OPERATIONS[step.operation].text.format(*step.operands)
            lines.append(f"  const float v{i} = {text};")
        return "\n".join([*lines, f"  return {self.result};", "}", ""])

    def evaluate(self, **values: Array | float) -> Array:
        """Compute the expression in numpy, in the type of the inputs.

        Args:
            values: Array of each input, all of the same shape, and number of each named scalar.
        """
        held: dict[str, Any] = {f"x{i}": values[name] for i, name in enumerate(self.inputs)}
        for i, number in enumerate(self.numbers(values)):
            held[f"s{i}"] = np.float32(number)
        with np.errstate(all="ignore"):
            for i, step in enumerate(self.steps):
                twin = OPERATIONS[step.operation].twin
                held[f"v{i}"] = twin(*(held[code] for code in step.operands))
        return np.array(held[self.result])

    def numbers(self, values: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the scalars rounded to float32; ``values`` has the named scalars.

        Raises:
            ShapeError: A scalar is missing or not a real number.
        """
        return tuple(_number(scalar, values) for scalar in self.scalars)


def _number(scalar: Scalar, values: Mapping[str, Any]) -> float:
    number = values.get(scalar.name) if scalar.value is None else scalar.value
    if not isinstance(number, Real):
        problem = "is missing" if number is None else f"has type {type(number).__name__}"
        raise ShapeError(f"scalar '{scalar.name}' {problem}", "Pass a real number.")
    number = float(number)
    with np.errstate(over="ignore"):
        return number if math.isnan(number) else float(np.float32(number))


def program(expression: Expression, *, inputs: Sequence[str] = ()) -> Program:
    """Return ``expression`` in the order of its computation; equal steps are computed once.

    Args:
        inputs: Names that are the first inputs, even if the expression does not use them.

    Raises:
        ShapeError: The expression has no input, or a name is both an input and a scalar.
    """
    builder = _Builder(inputs)
    result = builder.code(expression)
    both = builder.inputs.keys() & {scalar.name for scalar in builder.scalars}
    if both:
        raise ShapeError(f"'{both.pop()}' is an input and a scalar", "Rename one of them.")
    if not builder.inputs:
        raise ShapeError("the expression has no input", "Use at least one Input.")
    return Program(
        inputs=tuple(builder.inputs),
        scalars=tuple(builder.scalars),
        steps=tuple(builder.steps),
        result=result,
    )


class _Builder:
    """Assigns a code to each value: operands first, equal steps once."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = {name: f"x{i}" for i, name in enumerate(inputs)}
        self.scalars: list[Scalar] = []
        self.steps: dict[ProgramStep, str] = {}
        self._codes: dict[int, str] = {}
        self._named: dict[str, str] = {}

    def code(self, expression: Expression) -> str:
        for node in in_order(expression):
            self._codes[id(node)] = self._one(node)
        return self._codes[id(expression)]

    def _one(self, node: Expression) -> str:
        match node:
            case Input():
                return self.inputs.setdefault(node.name, f"x{len(self.inputs)}")
            case Scalar():
                return self._scalar(node)
            case Applied():
                codes = tuple(self._codes[id(operand)] for operand in node.operands)
                return self.steps.setdefault(
                    ProgramStep(node.operation, codes), f"v{len(self.steps)}"
                )
        raise ShapeError(
            f"invalid expression of type {type(node).__name__}", "Build it from an Input."
        )

    def _scalar(self, node: Scalar) -> str:
        if node.value is None and node.name in self._named:
            return self._named[node.name]
        self.scalars.append(node)
        code = f"s{len(self.scalars) - 1}"
        if node.value is None:
            self._named[node.name] = code
        return code
