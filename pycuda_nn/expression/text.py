"""Write an expression as text that :func:`parse` reads, for settings and checkpoints."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

from pycuda_nn.errors import ConfigError, PycudaNNError
from pycuda_nn.expression.nodes import Applied, Expression, Input, Scalar, in_order
from pycuda_nn.expression.parse import FUNCTIONS, MOST_CHARACTERS

_OPERATORS = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "div": "({} / {})",
    "pow": "({} ** {})",
    "neg": "(-{})",
    "sqr": "({} ** 2)",
    "less": "({} < {})",
    "at_most": "({} <= {})",
}
_NAMES = {operation: name for name, (operation, _) in FUNCTIONS.items()}


def text_of(expression: Expression) -> str:
    """Return the text of an expression.

    Raises:
        ConfigError: It has an operation or a named number that text cannot have.
    """
    texts: dict[int, str] = {}
    for node in in_order(expression):
        texts[id(node)] = _text(node, [texts[id(operand)] for operand in node.operands])
        if len(texts[id(node)]) > MOST_CHARACTERS:  # shared nodes are written at each use
            raise ConfigError(
                f"the formula has more than {MOST_CHARACTERS} characters as text",
                "Use fewer operations.",
            )
    return texts[id(expression)]


def traced(function: Callable[..., Any], names: Sequence[str]) -> str:
    """Return the text of a Python function of expressions.

    Args:
        function: Called once with an input for each of its parameters.
        names: Names that the parameters can have.

    Raises:
        ConfigError: The function failed, has other parameters, or does not return an expression.
    """
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{function!r} is not a Python function") from error
    label = getattr(function, "__name__", "the function")
    if not parameters or not set(parameters) <= set(names):
        raise ConfigError(
            f"{label} has the parameters {', '.join(parameters) or '-'}",
            f"Name its parameters from: {', '.join(names)}",
        )
    try:
        found = function(*(Input(name) for name in parameters))
    except PycudaNNError:
        raise
    except Exception as error:
        raise ConfigError(
            f"{label} is not an expression: {type(error).__name__}: {error}",
            "Use operators and the functions of pycuda_nn.expression.operations.",
        ) from error
    if not isinstance(found, Expression):
        raise ConfigError(f"{label} returned {type(found).__name__}, not an expression")
    return text_of(found)


def _text(node: Expression, operands: list[str]) -> str:
    match node:
        case Input():
            return node.name
        case Scalar() if node.value is not None and math.isfinite(node.value):
            return repr(node.value) if node.value >= 0 else f"({node.value!r})"
        case Applied() if node.operation in _OPERATORS:
            return _OPERATORS[node.operation].format(*operands)
        case Applied() if node.operation in _NAMES:
            return f"{_NAMES[node.operation]}({', '.join(operands)})"
        case Scalar() if node.value is not None:
            raise ConfigError(f"a formula cannot have the number {node.value}", "Use finite ones.")
    raise ConfigError(f"'{getattr(node, 'operation', type(node).__name__)}' cannot be text")
