"""Read an expression from text in the syntax of Python, such as ``x * sigmoid(x)``.

The text is data: nothing of it is executed.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from pycuda_nn.errors import ConfigError, did_you_mean
from pycuda_nn.expression import operations as ops
from pycuda_nn.expression.nodes import Applied, Expression, Input, Scalar

MOST_CHARACTERS = 500
_MOST_QUOTED = 80
_MOST_FACTORS = 8  # of a power with a whole exponent
_CONSTANTS = {"pi": math.pi, "e": math.e}
# Name, operation, and number of arguments.
FUNCTIONS: dict[str, tuple[str, int]] = {
    "abs": ("absolute", 1),
    "cos": ("cos", 1),
    "erf": ("erf", 1),
    "exp": ("exp", 1),
    "expm1": ("expm1", 1),
    "log": ("ln", 1),
    "log1p": ("log1p", 1),
    "max": ("maximum", 2),
    "min": ("minimum", 2),
    "relu": ("relu", 1),
    "sigmoid": ("sigmoid", 1),
    "sin": ("sin", 1),
    "softplus": ("softplus", 1),
    "sqrt": ("sqrt", 1),
    "tanh": ("tanh", 1),
    "where": ("where", 3),
}
# How to write what other libraries have as a function.
_INSTEAD = {
    "absolute": "abs(x)",
    "clamp": "min(max(x, low), high)",
    "clip": "min(max(x, low), high)",
    "gelu": "0.5 * x * (1 + erf(x / sqrt(2)))",
    "ln": "log(x)",
    "maximum": "max(a, b)",
    "minimum": "min(a, b)",
    "pow": "a ** b",
    "power": "a ** b",
    "sign": "(x > 0) - (x < 0)",
    "silu": "x * sigmoid(x)",
    "sqr": "x ** 2",
    "square": "x ** 2",
    "swish": "x * sigmoid(x)",
    "tan": "sin(x) / cos(x)",
}
_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
}
_COMPARED: dict[type[ast.cmpop], tuple[str, bool]] = {  # operation, operands swapped
    ast.Lt: ("less", False),
    ast.Gt: ("less", True),
    ast.LtE: ("at_most", False),
    ast.GtE: ("at_most", True),
}


def parse(text: str, names: Sequence[str] | Mapping[str, Expression]) -> Expression:
    """Return the expression of ``text``.

    Args:
        text: Numbers, ``names``, ``pi``, ``e``, ``+ - * / **``, comparisons by ``<``, ``<=``,
            ``>`` and ``>=``, which are 1 or 0, and :data:`FUNCTIONS`.
        names: Names of the inputs; or the expression that each name stands for.

    Raises:
        ConfigError: What is wrong, and where.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConfigError(
            f"an expression of {len(text)} characters",
            f"Use at most {MOST_CHARACTERS} characters.",
        )
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        where = f", character {error.offset}" if isinstance(error, SyntaxError) else ""
        what = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
        raise ConfigError(
            f"invalid expression {quoted(text)}{where}: {what}",
            "Use the syntax of Python, for example: 0.5 * x * (1 + tanh(x))",
        ) from error
    known = names if isinstance(names, Mapping) else {name: Input(name) for name in names}
    try:
        return _Reader(text, known).read(tree.body)
    except RecursionError as error:
        raise ConfigError(
            f"invalid expression {quoted(text)}: too many nested operations"
        ) from error


class _Reader:
    """Turns the syntax tree of one text into an expression."""

    def __init__(self, text: str, names: Mapping[str, Expression]) -> None:
        self._text, self._inputs = text, names

    def read(self, node: ast.expr) -> Expression:
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.Name():
                return self._name(node)
            case ast.BinOp() if type(node.op) in _BINARY:
                operation = _BINARY[type(node.op)]
                return self._applied(node, operation, node.left, node.right)
            case ast.UnaryOp(op=ast.USub()):
                return self._applied(node, "neg", node.operand)
            case ast.UnaryOp(op=ast.UAdd()):
                return self.read(node.operand)
            case ast.Compare():
                return self._comparison(node)
            case ast.Call():
                return self._call(node)
        raise self._error(node, "is not supported", f"Use + - * / **, <, > and {_functions()}.")

    def _number(self, node: ast.Constant) -> Expression:
        value = node.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._error(node, "is not a number", "Use real numbers.")
        return self._constant(node, lambda: float(value))

    def _name(self, node: ast.Name) -> Expression:
        if node.id in self._inputs:
            return self._inputs[node.id]
        if node.id in _CONSTANTS:
            return Scalar(value=_CONSTANTS[node.id])
        known = ", ".join(self._inputs)
        raise self._error(
            node, "is an unknown name", f"The variables are {known}; functions need ()."
        )

    def _comparison(self, node: ast.Compare) -> Expression:
        found: list[Expression] = []
        for left, operator, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            if type(operator) not in _COMPARED:
                raise self._error(node, "is not supported", "Compare by <, <=, > or >=.")
            operation, swapped = _COMPARED[type(operator)]
            pair = (right, left) if swapped else (left, right)
            found.append(self._applied(node, operation, *pair))
        return functools.reduce(lambda a, b: a * b, found)

    def _call(self, node: ast.Call) -> Expression:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS:
            hint = did_you_mean(name, FUNCTIONS) if name else f"Use {_functions()}."
            hint = f"Write {_INSTEAD[name]}." if name in _INSTEAD else hint
            raise self._error(node.func, "is an unknown function", hint)
        operation, count = FUNCTIONS[name]
        if node.keywords or len(node.args) != count:
            raise self._error(node, f"is wrong: {name} takes {count} arguments", "")
        return self._applied(node, operation, *node.args)

    def _applied(self, node: ast.expr, operation: str, *arguments: ast.expr) -> Expression:
        operands = [self.read(argument) for argument in arguments]
        numbers = [each.value for each in operands if isinstance(each, Scalar)]
        if len(numbers) == len(operands):
            twin = ops.OPERATIONS[operation].twin
            return self._constant(node, lambda: float(twin(*map(np.float64, numbers))))
        if operation == "pow":
            return _power(*operands)
        if operation == "ln" and (inner := _exponent(operands[0])) is not None:
            return inner
        return Applied(operation, *operands)

    def _constant(self, node: ast.expr, value: Callable[[], float]) -> Expression:
        """Return a number; one that float32 cannot represent is refused."""
        with np.errstate(all="ignore"):
            try:
                number = value()
                finite = bool(np.isfinite(np.float32(number)))
            except (OverflowError, ValueError):
                finite = False
        if not finite:
            raise self._error(node, "is not a finite float32 number", "")
        return Scalar(value=number)

    def _error(self, node: ast.AST, what: str, fix: str) -> ConfigError:
        part = ast.get_source_segment(self._text.strip(), node) or self._text
        return ConfigError(f"invalid expression {quoted(self._text)}: {quoted(part)} {what}", fix)


def _power(base: Expression, exponent: Expression) -> Expression:
    """Return a power; a small whole exponent becomes products, which are exact for negative x."""
    number = exponent.value if isinstance(exponent, Scalar) else None
    if number == 0:
        return Scalar(value=1.0)
    if number is None or not number.is_integer() or not 1 <= abs(number) <= _MOST_FACTORS:
        inner = _exponent(base)
        return base**exponent if inner is None else ops.exp(inner * exponent)
    found = base
    for factor in range(2, int(abs(number)) + 1):
        found = ops.sqr(base) if factor == 2 else found * base
    return found if number > 0 else 1.0 / found


def _exponent(node: Expression) -> Expression | None:
    """Return a of exp(a): log and powers of it are computed from a, which does not underflow."""
    is_exp = isinstance(node, Applied) and node.operation == "exp"
    return node.operands[0] if is_exp else None


def quoted(text: str) -> str:
    """Return the start of ``text`` in quotation marks, on one line."""
    return repr(text if len(text) <= _MOST_QUOTED else f"{text[: _MOST_QUOTED - 3]}...")


def _functions() -> str:
    return ", ".join(FUNCTIONS)
