"""Activations and losses as formulas: text in, numpy and CUDA functions with derivatives out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pycuda_nn.errors import ConfigError, did_you_mean
from pycuda_nn.expression import Expression, Input, Program, derivative, parse, program, traced
from pycuda_nn.expression.nodes import in_order
from pycuda_nn.expression.operations import exp
from pycuda_nn.expression.parse import quoted

# Activations by name that are formulas.
NAMED = {
    "elu": "where(x > 0, x, expm1(x))",
    "gelu": "0.5 * x * (1 + erf(x / sqrt(2)))",
    "leaky_relu": "where(x > 0, x, 0.01 * x)",
    "mish": "x * tanh(softplus(x))",
    "selu": "1.0507009873554805 * where(x > 0, x, 1.6732632423543772 * expm1(x))",
    "silu": "x * sigmoid(x)",
    "softplus": "softplus(x)",
}
# Names that other libraries have for built-in activations and losses.
_ELSEWHERE = {
    "bce": "logistic",
    "binarycrossentropy": "logistic",
    "categoricalcrossentropy": "softmax",
    "crossentropy": "softmax",
    "logloss": "softmax",
    "mse": "squared",
    "meansquarederror": "squared",
    "nll": "softmax",
    "sparsecategoricalcrossentropy": "softmax",
    "swish": "silu",
}
_OF_NUMBERS = ("z", "y")
_OF_CLASSES = ("logp", "y", "k", "classes")
VARIABLES = ("x", *_OF_NUMBERS, "logp", "p", "k", "classes")


@dataclass(frozen=True, kw_only=True)
class Formula:
    """A function of some inputs and its derivative with respect to the first input."""

    value: Program
    slope: Program

    def functions(self, name: str) -> str:
        """Return the CUDA source of the functions ``NAME`` and ``NAME_slope``."""
        return self.value.device_function(name) + self.slope.device_function(f"{name}_slope")


def formula(function: Callable[..., Any]) -> str:
    """Return the text of a Python function, for the settings ``activation`` and ``loss``.

    The function is called once, with expressions instead of numbers.

    Example:
        >>> import pycuda_nn as nn
        >>> from pycuda_nn.expression.operations import sigmoid
        >>> nn.formula(lambda x: x * sigmoid(1.702 * x))
        '(x * sigmoid((1.702 * x)))'

    Args:
        function: Its parameters are ``x`` for an activation; ``z`` and ``y`` for a loss of numbers;
            ``logp`` or ``p``, ``y``, ``k`` and ``classes`` for a loss of classes.

    Raises:
        ConfigError: The function has other parameters, or is not an expression of them.
    """
    return traced(function, VARIABLES)


def activation_formula(name: str) -> Formula:
    """Return the formula of an activation: a name in :data:`NAMED`, or an expression of ``x``.

    Raises:
        ConfigError: Neither of them.
    """
    return _compiled(NAMED.get(name, name), ("x",))


def number_loss_formula(text: str) -> Formula:
    """Return the formula of a loss of one output ``z`` and its target ``y``. Raises ConfigError."""
    return _compiled(text, _OF_NUMBERS)


def class_loss_formula(text: str) -> Formula:
    """Return the formula of the term of one class of a loss. Raises ConfigError.

    ``logp`` is the log-softmax of the outputs, ``p`` = exp(logp), ``y`` 1 for the class of the row
    and 0 for others, ``k`` the number of the class from 0, and ``classes`` how many there are.
    """
    return _compiled(text, _OF_CLASSES)


def is_class_loss(text: str) -> bool:
    """Return whether a loss uses a variable of classes. Raises ConfigError."""
    found = parse(text, VARIABLES[1:])
    used = {node.name for node in in_order(found) if isinstance(node, Input)}
    of_classes = used & {"logp", "p", "k", "classes"}
    if of_classes and "z" in used:
        raise ConfigError(
            f"invalid loss {quoted(text)}: it uses z and {', '.join(sorted(of_classes))}",
            "Use z and y for numbers; logp or p, y, k and classes for classes.",
        )
    if not used & {"z", "logp", "p"}:
        raise ConfigError(
            f"invalid loss {quoted(text)}: it does not depend on the outputs of the network",
            "Use z for numbers; logp or p for classes.",
        )
    return bool(of_classes)


def activation_problem(value: Any, names: Sequence[str]) -> str | None:
    """Return why ``value`` is not an activation, or None."""
    wanted = f"must be one of {', '.join(names)}, or an expression of x such as 'x * sigmoid(x)'"

    def check(text: str) -> None:
        _require_slope(activation_formula(text), f"invalid activation {quoted(text)}")

    return _problem(value, names, wanted, check)


def loss_problem(value: Any, names: Sequence[str]) -> str | None:
    """Return why ``value`` is not a loss, or None."""
    wanted = f"must be one of {', '.join(names)}, or an expression of z and y, or logp and y"

    def check(text: str) -> None:
        compiled = (class_loss_formula if is_class_loss(text) else number_loss_formula)(text)
        _require_slope(compiled, f"invalid loss {quoted(text)}")

    return _problem(value, names, wanted, check)


def _problem(
    value: Any, names: Sequence[str], wanted: str, check: Callable[[str], object]
) -> str | None:
    if value in names:
        return None
    if not isinstance(value, str):
        return f"{wanted}. Pass nn.formula(function)" if callable(value) else wanted
    if value.isidentifier() and value not in VARIABLES:
        return wanted + _hint(value.casefold(), names)
    try:
        check(value)
    except ConfigError as error:
        return ". ".join(filter(None, [error.what, error.fix]))
    return None


def _hint(name: str, names: Sequence[str]) -> str:
    other = _ELSEWHERE.get(name.replace("_", ""))
    found = f"Did you mean '{other}'?" if other in names else did_you_mean(name, names)
    return f". {found}" if "mean" in found else ""


def _require_slope(formula: Formula, what: str) -> None:
    slope = formula.slope
    if not slope.steps and slope.result == "s0" and slope.numbers({}) == (0.0,):
        variable = formula.value.inputs[0]
        raise ConfigError(f"{what}: its slope is 0 everywhere", f"Let it depend on {variable}.")


@functools.lru_cache(maxsize=64)
def _compiled(text: str, inputs: tuple[str, ...]) -> Formula:
    first: dict[str, Expression] = {name: Input(name) for name in inputs}
    known = {**first, "p": exp(first["logp"])} if "logp" in first else first
    value = parse(text, known)
    return Formula(
        value=program(value, inputs=inputs),
        slope=program(derivative(value, inputs[0]), inputs=inputs),
    )
