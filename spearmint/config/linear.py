"""The ``require`` of a config.pb: linear constraints, read from text and checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from spearmint.conditions import holds, requirements
from spearmint.config.document import Document
from spearmint.config.linear_text import Form, LinearProblem, read_comparison
from spearmint.config.variables import describe
from spearmint.linear import LinearConstraint
from spearmint.model import Kind, Params, Variable

_EXAMPLE = 'Write, for example: require: "units_1 >= units_2"'


def read_linear(document: Document, variables: Sequence[Variable]) -> tuple[LinearConstraint, ...]:
    """Return the linear constraints of the file.

    Raises:
        ConfigError: One has another form, a missing or ENUM variable, or no point meets it.
    """
    found: list[LinearConstraint] = []
    for i, text in enumerate(document.message.require):
        try:
            found += linear_constraints(text, variables)
        except LinearProblem as problem:
            raise document.error(problem.what, problem.fix, "require", i) from None
    return tuple(found)


def linear_constraints(text: str, variables: Sequence[Variable]) -> list[LinearConstraint]:
    """Return the constraints of one ``require``, one for each comparison sign.

    Raises:
        LinearProblem: The text is invalid, or no point meets it.
    """
    text = " ".join(text.split())
    sides, signs = read_comparison(text, variables)
    by_element = {key: variable for variable in variables for key in variable.elements()}
    pairs = zip(pairwise(sides), signs, strict=True)
    found = [_constraint(text, *pair, sign, by_element) for pair, sign in pairs]
    for each in found:
        _require_possible(each, variables, by_element)
    return found


def _constraint(
    text: str, left: Form, right: Form, sign: str, by_element: Mapping[str, Variable]
) -> LinearConstraint:
    """Return ``left`` ``sign`` ``right`` as a sum that is at most a limit."""
    if sign in (">", ">="):
        left, right = right, left
    names = dict.fromkeys((*left.weights, *right.weights))
    sums = {name: left.weights.get(name, 0.0) - right.weights.get(name, 0.0) for name in names}
    weights = tuple((name, weight) for name, weight in sums.items() if weight != 0.0)
    high = right.constant - left.constant
    if not weights:
        raise LinearProblem(f"a comparison of require {text!r} has no variable", _EXAMPLE)
    if not all(map(math.isfinite, (high, *sums.values()))):
        raise LinearProblem(
            f"require {text!r} has a number that is too large", "Divide both sides."
        )
    all_int = all(by_element[name].kind is Kind.INT for name, _ in weights)
    if sign == "==" and not all_int:
        first = next(n for n, _ in weights if by_element[n].kind is not Kind.INT)
        raise LinearProblem(
            f"require {text!r}: == needs INT variables, and {first!r} is FLOAT",
            f"Remove {first!r} from the search, and compute it from the others in your code.",
        )
    is_whole = all_int and all(weight == int(weight) for _, weight in weights)
    is_strict = sign in ("<", ">")
    if is_whole and sign != "==":
        high, is_strict = float(math.ceil(high) - 1 if is_strict else math.floor(high)), False
    return LinearConstraint(text, weights, high, sign == "==", is_strict, is_whole)


def _require_possible(
    constraint: LinearConstraint, variables: Sequence[Variable], by_element: Mapping[str, Variable]
) -> None:
    used = list(dict.fromkeys(by_element[name].name for name in constraint.names))
    if not _allows(constraint, {}, by_element) or (
        constraint.is_equal and constraint.is_whole and constraint.high != int(constraint.high)
    ):
        known = {variable.name: variable for variable in variables}
        bounds = "; ".join(f"{name!r} is {describe(known[name])}" for name in used)
        raise LinearProblem(
            f"no point meets require {constraint.text!r}", f"Relax it, or change bounds: {bounds}."
        )
    needed = requirements(tuple(variables))
    left: dict[str, set[str | int]] = {}
    for condition in (each for name in used for each in needed.get(name, ())):
        values = left.setdefault(condition.parent, set(condition.values))
        values &= set(condition.values)
        if not values:
            raise LinearProblem(
                f"require {constraint.text!r} never counts: its variables are active only with "
                f"different values of {condition.parent!r}",
                "Remove it.",
            )


def _allows(
    constraint: LinearConstraint, values: Mapping[str, Any], by_element: Mapping[str, Variable]
) -> bool:
    """Return whether some values of the variables that ``values`` omits meet a constraint."""
    terms = [
        [weight * bound for bound in _bounds(values, name, by_element[name])]
        for name, weight in constraint.weights
    ]
    size = sum(max(map(abs, term)) for term in terms)
    least, most = sum(map(min, terms)), sum(map(max, terms))
    if constraint.is_equal and least <= constraint.high <= most:
        return True
    return constraint.allows(least, size) or (constraint.is_equal and constraint.allows(most, size))


def _bounds(values: Mapping[str, Any], name: str, variable: Variable) -> tuple[float, float]:
    return (values[name], values[name]) if name in values else (variable.low, variable.high)


def unmet(
    constraints: Iterable[LinearConstraint],
    variables: Sequence[Variable],
    values: Mapping[str, Any],
) -> LinearConstraint | None:
    """Return the first constraint that a point cannot meet; None if there is none.

    Args:
        constraints: The constraints, of which each is looked at alone.
        variables: All variables of the search.
        values: The point, by element name; it can omit variables.
    """
    by_element = {key: variable for variable in variables for key in variable.elements()}
    needed = requirements(tuple(variables))

    def counts(constraint: LinearConstraint) -> bool:
        conditions = [c for n in constraint.names for c in needed.get(by_element[n].name, ())]
        return holds(conditions, values)

    wrong = (c for c in constraints if counts(c) and not _allows(c, values, by_element))
    return next(wrong, None)


def require_inside(
    document: Document,
    constraints: Sequence[LinearConstraint],
    variables: Sequence[Variable],
    seed_points: Sequence[Params],
) -> None:
    """Raise ConfigError if a seed point, or the guesses, cannot meet a constraint."""
    if not constraints:
        return
    for i, point in enumerate(seed_points):
        values = {k: v for name, some in point.items() for k, v in _named(variables, name, some)}
        if constraint := unmet(constraints, variables, values):
            what = f"seed point {i + 1} violates require {constraint.text!r}"
            raise document.error(what, "Change its values, or relax it.", "seed_point", i)
    if problem := guesses_problem(constraints, variables):
        i = next(k for k, each in enumerate(variables) if each.guess is not None)
        raise document.error(*problem, "variable", i, "guess", 0)


def guesses_problem(
    constraints: Iterable[LinearConstraint], variables: Sequence[Variable]
) -> tuple[str, str] | None:
    """Return why the guesses cannot be in one trial, and the fix; None if they can."""
    guesses = {k: v.guess for v in variables if v.guess is not None for k in v.elements()}
    by_element = {key: variable for variable in variables for key in variable.elements()}
    for each in constraints:
        if not _allows(each, guesses, by_element):
            used = ", ".join(f"{name} {guesses[name]:g}" for name in each.names if name in guesses)
            return f"the guesses {used} violate require {each.text!r}", "Change one of them."
    return None


def _named(
    variables: Sequence[Variable], name: str, values: Iterable[Any]
) -> Iterator[tuple[str, Any]]:
    variable = next(each for each in variables if each.name == name)
    return zip(variable.elements(), values, strict=True)
