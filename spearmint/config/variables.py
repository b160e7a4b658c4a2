"""Variables and seed points of a config.pb."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from spearmint.conditions import requirements
from spearmint.config import experiment_pb2 as pb
from spearmint.config.document import Document
from spearmint.model import Kind, Params, Value, Variable

_LARGEST_INT = 2**53  # a double in config.pb represents every integer up to this one
_MOST_SIZE = 10_000
_MOST_SPREAD = 1.0


def read_variable(document: Document, i: int) -> Variable:
    """Return variable ``i``.

    Raises:
        ConfigError: A field is missing or invalid.
    """
    spec = document.message.variable[i]
    at = ("variable", i)
    if not spec.HasField("name") or not spec.name:
        raise document.error("variable without a name", 'Add, for example: name: "lr"', *at)
    if not spec.HasField("type"):
        fix = "Add one of: type: FLOAT, type: INT, type: ENUM"
        raise document.error(f"variable {spec.name!r} has no type", fix, *at)
    if spec.size < 1:
        fix = "Write a size of at least 1."
        raise document.error(f"variable {spec.name!r} has size {spec.size}", fix, *at, "size", 0)
    if spec.size > _MOST_SIZE:
        fix = f"Write a size of at most {_MOST_SIZE:,}: search what matters most."
        raise document.error(f"variable {spec.name!r} has size {spec.size}", fix, *at, "size", 0)
    kind = Kind(pb.Experiment.ParameterSpec.Type.Name(spec.type))
    if kind is Kind.ENUM:
        options = _options(document, i)
        _refuse_guess(document, i, "guess", "spread")
        return Variable(name=spec.name, kind=kind, size=spec.size, options=options)
    low, high = _bounds(document, i, kind)
    variable = Variable(name=spec.name, kind=kind, size=spec.size, low=low, high=high, log=spec.log)
    return _with_guess(document, i, variable)


def _with_guess(document: Document, i: int, variable: Variable) -> Variable:
    """Return ``variable`` with the guess and the spread of the file, if it has any."""
    spec = document.message.variable[i]
    if not spec.HasField("guess"):
        _refuse_guess(document, i, "spread")
        return variable
    if problem := guess_problem(variable, spec.guess, spec.spread):
        field, what, fix = problem
        raise document.error(what, fix, "variable", i, field, 0)
    return replace(variable, guess=spec.guess, spread=spec.spread)


def _refuse_guess(document: Document, i: int, *fields: str) -> None:
    """Raise ConfigError if variable ``i`` has one of ``fields``, which it cannot have."""
    spec = document.message.variable[i]
    for field in fields:
        if spec.HasField(field):
            kind = pb.Experiment.ParameterSpec.Type.Name(spec.type)
            what = f"{kind} variable {spec.name!r} has a {field}"
            fix = "Add a guess." if kind != Kind.ENUM else "Write a seed_point for choices."
            raise document.error(what, fix, "variable", i, field, 0)


def guess_problem(variable: Variable, guess: float, spread: float) -> tuple[str, str, str] | None:
    """Return the field that is invalid, why, and the fix; None if a guess is valid."""
    if not fits(variable, guess):
        is_whole = variable.kind is not Kind.INT or float(guess).is_integer()
        problem = "is out of bounds" if is_whole else "is not a whole number"
        what = f"guess {guess:g} of {variable.name!r} {problem}"
        return "guess", what, f"Expected {describe(variable)}."
    if not 0.0 < spread <= _MOST_SPREAD:
        what = f"spread {spread:g} of {variable.name!r} is out of bounds"
        return "spread", what, "Write a share of the range, above 0 and up to 1, such as 0.1."
    return None


def _options(document: Document, i: int) -> tuple[str, ...]:
    spec, at = document.message.variable[i], ("variable", i)
    if not spec.options:
        fix = 'Add a line for each choice: options: "relu"'
        raise document.error(f"ENUM variable {spec.name!r} has no options", fix, *at)
    for k, option in enumerate(spec.options):
        if option in spec.options[:k]:
            fix = "List each choice once."
            what = f"duplicate option {option!r} in variable {spec.name!r}"
            raise document.error(what, fix, *at, "options", k)
    if spec.log:
        fix = "Remove log, or make the variable FLOAT or INT."
        raise document.error(f"ENUM variable {spec.name!r} has a log scale", fix, *at, "log", 0)
    return tuple(spec.options)


def _bounds(document: Document, i: int, kind: Kind) -> tuple[float, float]:
    spec, at = document.message.variable[i], ("variable", i)
    for field in ("min", "max"):
        if not spec.HasField(field):
            fix = f"Add a line such as {field}: 1"
            raise document.error(f"variable {spec.name!r} has no {field}", fix, *at)
        bound = getattr(spec, field)
        if not math.isfinite(bound):
            what = f"{field} of {spec.name!r} is {bound}"
            raise document.error(what, "Write a finite number.", *at, field, 0)
        if kind is Kind.INT and (bound != int(bound) or abs(bound) > _LARGEST_INT):
            what = f"{field} of INT variable {spec.name!r} is {bound:g}"
            raise document.error(what, "Write a whole number from -2**53 to 2**53.", *at, field, 0)
    if spec.min > spec.max:
        what = f"min {spec.min:g} of {spec.name!r} is above max {spec.max:g}"
        raise document.error(what, "Swap min and max.", *at, "min", 0)
    if spec.log and spec.min <= 0:
        what = f"variable {spec.name!r} has a log scale and min {spec.min:g}"
        raise document.error(what, "Write a min above 0, or remove log.", *at, "min", 0)
    return spec.min, spec.max


def read_seed_point(document: Document, i: int, variables: Sequence[Variable]) -> Params:
    """Return seed point ``i``, which can omit variables.

    Raises:
        ConfigError: It has an unknown variable, or a value out of bounds.
    """
    point: dict[str, tuple[Value, ...]] = {}
    by_name = {variable.name: variable for variable in variables}
    for k, param in enumerate(document.message.seed_point[i].param):
        at = ("seed_point", i, "param", k)
        variable = by_name.get(param.name)
        if variable is None:
            fix = f"Name one of: {', '.join(by_name)}."
            raise document.error(f"unknown variable {param.name!r} in a seed point", fix, *at)
        values: tuple[Value, ...] = (*param.dbl_val, *param.int_val, *param.str_val)
        if len(values) != variable.size or not all(fits(variable, v) for v in values):
            what = f"{param.name} = {list(values)} in a seed point is out of bounds"
            raise document.error(what, f"Expected {describe(variable)}.", *at)
        point[param.name] = tuple(as_typed(variable, value) for value in values)
    for k, param in enumerate(document.message.seed_point[i].param):
        if problem := inactive_problem(variables, point, param.name):
            at = ("seed_point", i, "param", k)
            raise document.error(f"seed point: {problem[0]}", problem[1], *at)
    return point


def inactive_problem(
    variables: Sequence[Variable], point: Params, name: str
) -> tuple[str, str] | None:
    """Return why ``name`` is not active at a point, and the fix; None if it is."""
    first = {key: values[0] for key, values in point.items()}
    for condition in requirements(tuple(variables)).get(name, ()):
        if condition.parent not in first:
            fix = f"Give {condition.parent} as well, or leave {name} out."
            return f"{name} is only active when {condition}", fix
        if first[condition.parent] not in condition.values:
            what = f"{name} is only active when {condition}, not {first[condition.parent]}"
            return what, f"Leave {name} out."
    return None


def fits(variable: Variable, value: Value) -> bool:
    """Return whether ``value`` is within the bounds, or one of the options, of ``variable``."""
    if variable.kind is Kind.ENUM:
        return value in variable.options
    if isinstance(value, str) or not variable.low <= value <= variable.high:
        return False
    return variable.kind is not Kind.INT or value == int(value)


def as_typed(variable: Variable, value: Value) -> Value:
    """Return ``value`` in the type of ``variable``: 1 is 1.0 for a FLOAT."""
    if variable.kind is Kind.ENUM:
        return value
    return float(value) if variable.kind is Kind.FLOAT else int(value)


def describe(variable: Variable) -> str:
    """Return ``2 FLOAT from 0 to 1 (log)`` for messages."""
    when = f" when {' and '.join(map(str, variable.when))}" if variable.when else ""
    if variable.kind is Kind.ENUM:
        return f"{variable.size} of {', '.join(variable.options)}{when}"
    scale = " (log)" if variable.log else ""
    bounds = f"from {_exact(variable.low)} to {_exact(variable.high)}"
    return f"{variable.size} {variable.kind} {bounds}{scale}{when}"


def _exact(bound: float) -> str:
    short = f"{bound:g}"
    return short if float(short) == bound else repr(bound)
