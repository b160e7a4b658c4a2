"""Derivatives of expressions, by reverse accumulation: they are expressions, too.

Source: Griewank and Walther 2008, "Evaluating Derivatives", chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pycuda_nn.errors import ShapeError
from pycuda_nn.expression.nodes import Applied, Expression, Input, Scalar, in_order

_Rule = Callable[..., tuple[Expression | float, ...]]

# Slopes of a value with respect to its operands, given the value and the operands.
_SLOPES: dict[str, _Rule] = {
    "add": lambda v, a, b: (1.0, 1.0),
    "sub": lambda v, a, b: (1.0, -1.0),
    "mul": lambda v, a, b: (b, a),
    "div": lambda v, a, b: (1.0 / b, -(v / b)),
    "neg": lambda v, a: (-1.0,),
    "exp": lambda v, a: (v,),
    "expm1": lambda v, a: (v + 1.0,),
    "ln": lambda v, a: (1.0 / a,),
    "log1p": lambda v, a: (1.0 / (a + 1.0),),
    "sqr": lambda v, a: (a * 2.0,),
    "sqrt": lambda v, a: (0.5 / v,),
    "absolute": lambda v, a: (Applied("sign", a),),
    "sin": lambda v, a: (Applied("cos", a),),
    "cos": lambda v, a: (-Applied("sin", a),),
    "erf": lambda v, a: (2.0 / math.sqrt(math.pi) * Applied("exp", -Applied("sqr", a)),),
    "tanh": lambda v, a: (1.0 - Applied("sqr", v),),
    "sigmoid": lambda v, a: (v * (1.0 - v),),
    "softplus": lambda v, a: (Applied("sigmoid", a),),
    "relu": lambda v, a: (Applied("less", 0.0, a),),
    "less": lambda v, a, b: (0.0, 0.0),
    "at_most": lambda v, a, b: (0.0, 0.0),
    "sign": lambda v, a: (0.0,),
}
_CHOICES = ("where", "maximum", "minimum")


def derivative(expression: Expression, name: str) -> Expression:
    """Return the derivative with respect to the input ``name``.

    In the branch of ``where``, ``maximum`` or ``minimum`` that was not chosen, a slope that is not
    finite does not count. At a kink the derivative is that of one side.

    Raises:
        ShapeError: An operation has no derivative.
    """
    nodes = list(in_order(expression))
    depends = _depending(nodes, name)
    bars = _Adjoints()
    bars.add(expression, Scalar(value=1.0), chosen=False)
    found: Expression = Scalar(value=0.0)
    for node in reversed(nodes):
        if id(node) not in depends or id(node) not in bars:
            continue
        if isinstance(node, Input):
            found = _plus(found, bars[node])
        elif isinstance(node, Applied):
            bars.pass_on(node, depends)
    return found


def _depending(nodes: list[Expression], name: str) -> set[int]:
    """Return the ids of the nodes whose value depends on the input ``name``."""
    found: set[int] = set()
    for node in nodes:
        is_it = isinstance(node, Input) and node.name == name
        if is_it or any(id(operand) in found for operand in node.operands):
            found.add(id(node))
    return found


class _Adjoints:
    """The derivative of the result with respect to each node, by the id of the node."""

    def __init__(self) -> None:
        self._bars: dict[int, Expression] = {}
        self._chosen: set[int] = set()  # nodes whose adjoint can be 0 because of a choice

    def __contains__(self, key: int) -> bool:
        return key in self._bars

    def __getitem__(self, node: Expression) -> Expression:
        return self._bars[id(node)]

    def add(self, node: Expression, bar: Expression, *, chosen: bool) -> None:
        """Add ``bar`` to the adjoint of ``node``."""
        held = self._bars.get(id(node))
        self._bars[id(node)] = bar if held is None else _plus(held, bar)
        if chosen:
            self._chosen.add(id(node))

    def pass_on(self, node: Applied, depends: set[int]) -> None:
        """Add what ``node`` contributes to the adjoints of its operands."""
        bar, chosen = self[node], id(node) in self._chosen
        if node.operation in _CHOICES:
            parts, chosen = _choice(node, bar), True
        else:
            parts = [
                _times(bar, slope, chosen=chosen) if id(operand) in depends else None
                for operand, slope in zip(node.operands, _slopes(node), strict=True)
            ]
        for operand, part in zip(node.operands, parts, strict=True):
            if part is not None and id(operand) in depends:
                self.add(operand, part, chosen=chosen)


def _choice(node: Applied, bar: Expression) -> list[Expression | None]:
    """Return the adjoints of the operands of a choice: ``bar`` for the chosen one, else 0."""
    if node.operation == "where":
        condition = node.operands[0]
        rest: list[Expression | None] = [None]
    else:
        a, b = node.operands
        condition = Applied("at_most", *((b, a) if node.operation == "maximum" else (a, b)))
        rest = []
    return [*rest, Applied("where", condition, bar, 0.0), Applied("where", condition, 0.0, bar)]


def _slopes(node: Applied) -> list[Expression]:
    if node.operation == "pow":
        slopes = _slopes_of_power(node)
    elif node.operation in _SLOPES:
        slopes = _SLOPES[node.operation](node, *node.operands)
    else:
        raise ShapeError(f"the operation '{node.operation}' has no derivative")
    return [slope if isinstance(slope, Expression) else Scalar(value=slope) for slope in slopes]


def _slopes_of_power(node: Applied) -> tuple[Expression | float, ...]:
    base, exponent = node.operands
    return exponent * Applied("pow", base, exponent - 1.0), node * Applied("ln", base)


def _is(node: Expression, value: float) -> bool:
    return isinstance(node, Scalar) and node.value == value


def _plus(a: Expression, b: Expression) -> Expression:
    return b if _is(a, 0.0) else a if _is(b, 0.0) else a + b


def _times(bar: Expression, slope: Expression, *, chosen: bool) -> Expression:
    if _is(bar, 0.0) or _is(slope, 0.0):
        return Scalar(value=0.0)
    if _is(bar, 1.0):
        return slope
    if _is(slope, 1.0):
        return bar
    if _is(slope, -1.0):
        return -bar
    return Applied("chain", bar, slope) if chosen else bar * slope
