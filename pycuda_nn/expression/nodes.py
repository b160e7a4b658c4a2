"""Nodes of an expression: inputs, numbers, and operations applied to them.

::

    x = Input("x")
    softplus = ln(exp(x * 0.5 + 0.25) + 1.0)
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import ClassVar

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

    def __pow__(self, other: Expression | float) -> Expression:
        return Applied("pow", self, other)

    def __rpow__(self, other: float) -> Expression:
        return Applied("pow", other, self)

    def __neg__(self) -> Expression:
        return Applied("neg", self)

    def __abs__(self) -> Expression:
        return Applied("absolute", self)

    # 1 where it holds, else 0; == and != compare the nodes themselves.

    def __lt__(self, other: Expression | float) -> Expression:
        return Applied("less", self, other)

    def __gt__(self, other: Expression | float) -> Expression:
        return Applied("less", other, self)

    def __le__(self, other: Expression | float) -> Expression:
        return Applied("at_most", self, other)

    def __ge__(self, other: Expression | float) -> Expression:
        return Applied("at_most", other, self)

    def __bool__(self) -> bool:
        raise ShapeError(
            "an expression is neither true nor false",
            "Choose per element: where(x < 0, a, b).",
        )


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
    if isinstance(operand, bool):  # of x == 0, which compares the nodes themselves
        raise ShapeError(f"{operation}: invalid operand {operand}", "Compare by <, <=, > or >=.")
    if isinstance(operand, Real):
        return Scalar(value=float(operand))
    kind = type(operand).__name__
    raise ShapeError(
        f"{operation}: invalid operand of type {kind}", "Use an expression or a real number."
    )


def in_order(expression: Expression) -> Iterator[Expression]:
    """Yield all nodes once, operands first; it does not recurse, so that long chains work."""
    seen: set[int] = set()
    waiting = [expression]
    while waiting:
        node = waiting[-1]
        missing = [operand for operand in node.operands if id(operand) not in seen]
        if missing:
            waiting += reversed(missing)
            continue
        waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
