"""Points as users write them: ``lr=0.1 units={64,128}``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

from spearmint.conditions import active_variables
from spearmint.config.variables import as_typed, describe, fits, inactive_problem
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
    points = [
        {key: value for part in parts for key, value in part.items()}
        for parts in itertools.product(*choices.values())
    ]
    return _active(points, variables) if any(variable.when for variable in variables) else points


def _active(points: Sequence[Point], variables: Sequence[Variable]) -> list[Point]:
    """Return each of ``points`` once, without its inactive variables.

    Raises:
        InputError: A variable is inactive in all points.
    """
    left = {repr(found): found for point in points if (found := active_point(point, variables))}
    kept = {key for point in left.values() for key in point}
    for variable in variables:
        given = [key for key in variable.elements() if any(key in point for point in points)]
        if given and not kept.intersection(given):
            first = {key: (value,) for key, value in points[0].items()}
            what, fix = inactive_problem(variables, first, variable.name) or ("", "")
            raise InputError(what, fix)
    return list(left.values())


def active_point(point: Mapping[str, Value], variables: Sequence[Variable]) -> Point:
    """Return ``point`` without the variables that are inactive at it."""
    keys = {k for variable in active_variables(variables, point) for k in variable.elements()}
    return {key: value for key, value in point.items() if key in keys}


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
