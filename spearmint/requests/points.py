"""Points as users write them: ``lr=0.1 units={64,128}``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from spearmint.config.variables import as_typed, describe, fits
from spearmint.errors import InputError, did_you_mean
from spearmint.model import Kind, Value, Variable

MOST_POINTS = 10_000

Point = dict[str, Value]
"""Values by element name: ``lr``, or ``X[0]`` of a variable of several elements."""


def read_points(words: Sequence[str], variables: Sequence[Variable]) -> list[Point]:
    """Return the product of the values that ``words`` give, one point for each combination.

    Args:
        words: ``NAME=VALUE``, ``NAME={VALUE,VALUE}``, or ``NAME=VALUE,VALUE`` for a variable of two
            elements. A name that is given several times has as many values: a shell makes
            ``units=64 units=128`` of ``units={64,128}``.
        variables: The space.

    Raises:
        InputError: A variable does not exist, a value is out of bounds, or there are too many
            points.
    """
    choices: dict[str, list[Point]] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not text:
            raise InputError(
                f"{word!r} is not a value of a variable", "Write NAME=VALUE, for example lr=0.1"
            )
        variable, keys = _elements(name, variables)
        found = choices.setdefault(name, [])
        for alternative in _alternatives(text):
            point = _values(variable, keys, alternative)
            if point not in found:
                found.append(point)
    _check(choices)
    return [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*choices.values())
    ]


def _elements(name: str, variables: Sequence[Variable]) -> tuple[Variable, tuple[str, ...]]:
    """Return the variable that ``name`` means, and the elements of it."""
    for variable in variables:
        if name == variable.name:
            return variable, variable.elements()
        if name in variable.elements():
            return variable, (name,)
    names = [variable.name for variable in variables]
    hint = did_you_mean(name, names) or f"Name one of: {', '.join(names)}."
    raise InputError(f"unknown variable {name!r}", hint)


def _alternatives(text: str) -> list[str]:
    if text.startswith("{") and text.endswith("}"):
        return text[1:-1].split(",")
    return [text]


def _values(variable: Variable, keys: tuple[str, ...], text: str) -> Point:
    texts = [part.strip() for part in text.split(",")] if len(keys) > 1 else [text.strip()]
    if len(texts) != len(keys):
        raise InputError(
            f"{variable.name} has {len(keys)} elements, and {text!r} has {len(texts)} values",
            f"Write {variable.name}=VALUE,VALUE with {len(keys)} values, once for each point.",
        )
    return {key: _value(variable, part) for key, part in zip(keys, texts, strict=True)}


def _value(variable: Variable, text: str) -> Value:
    value: Value = text
    if variable.kind is not Kind.ENUM:
        try:
            value = int(text)
        except ValueError:
            value = _number(text)
    if not fits(variable, value):
        hint = ""
        if "," in text and variable.size == 1:
            hint = f" For several points: '{variable.name}={{{text}}}'"
        raise InputError(
            f"{variable.name}={text} is out of bounds", f"Expected {describe(variable)}.{hint}"
        )
    return as_typed(variable, value)


def _number(text: str) -> Value:
    """Return a finite number, or the text, which does not fit any range."""
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def _check(choices: Mapping[str, Sequence[Point]]) -> None:
    if not choices:
        raise InputError("no point given", "Write NAME=VALUE, for example lr=0.1")
    owners: dict[str, str] = {}
    for name, points in choices.items():
        for key in points[0]:
            if owners.setdefault(key, name) != name:
                raise InputError(f"{key} is given twice", f"Write {owners[key]} or {name}.")
    n = math.prod(map(len, choices.values()))
    if n > MOST_POINTS:
        raise InputError(f"these are {n} points", f"Add at most {MOST_POINTS} at a time.")
