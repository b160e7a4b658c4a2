"""Convert variables to Optuna distributions, and flat parameters to vectors and back."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.choosers.tree import Tree
from spearmint.conditions import active_variables, holds, parents_first, requirements
from spearmint.config.variables import as_typed
from spearmint.linear import LinearConstraint
from spearmint.model import Kind, Params, Variable
from spearmint.outputs import Objective

Distributions = dict[str, BaseDistribution]


def distributions(variables: Iterable[Variable]) -> Distributions:
    """Return one distribution per element of each variable, in the order of config.pb."""
    return {key: _distribution(variable) for variable in variables for key in variable.elements()}


def tree_of(
    variables: Sequence[Variable], linear: tuple[LinearConstraint, ...] = ()
) -> Tree | None:
    """Return the parameters of a search with conditions or linear constraints; else None."""
    needed = requirements(tuple(variables))
    if not needed and not linear:
        return None
    by_element = {
        key: needed[variable.name]
        for variable in variables
        if variable.name in needed
        for key in variable.elements()
    }
    return Tree(distributions(parents_first(variables)), by_element, linear)


def guesses_of(variables: Iterable[Variable]) -> dict[str, tuple[float, float]]:
    """Return the guess and the spread of each element that has a guess."""
    return {
        key: (variable.guess, variable.spread)
        for variable in variables
        if variable.guess is not None
        for key in variable.elements()
    }


def references_of(objectives: Iterable[Objective]) -> tuple[float, ...]:
    """Return the losses of the references, NaN where there is none; empty if none is given."""
    found = tuple(
        math.nan if each.reference is None else each.loss(each.reference) for each in objectives
    )
    return () if all(map(math.isnan, found)) else found


def guessed_points(variables: Sequence[Variable]) -> list[dict[str, Any]]:
    """Return the guesses as points, by element name: one for each branch that has a guess."""
    guessed = {v.name: as_typed(v, v.guess) for v in variables if v.guess is not None}
    needed = requirements(tuple(variables))
    points: list[dict[str, Any]] = []
    for name in guessed:
        values: dict[str, Any] = dict(guessed)
        for condition in needed.get(name, ()):
            same = [c for c in needed[name] if c.parent == condition.parent]
            if not holds(same, values):
                allowed = (v for v in condition.values if all(v in c.values for c in same))
                values[condition.parent] = next(allowed)
        active = [v for v in active_variables(variables, values) if v.name in values]
        point = {key: values[v.name] for v in active for key in v.elements()}
        points += [point] if point not in points else []
    return [p for p in points if not any(p.items() < other.items() for other in points)]


def _distribution(variable: Variable) -> BaseDistribution:
    if variable.kind is Kind.ENUM:
        return CategoricalDistribution(variable.options)
    if variable.kind is Kind.INT:
        return IntDistribution(int(variable.low), int(variable.high), log=variable.log)
    return FloatDistribution(variable.low, variable.high, log=variable.log)


def to_params(variables: Iterable[Variable], flat: Mapping[str, Any]) -> Params:
    """Return vectors of the active variables. Raises KeyError if ``flat`` lacks an element."""
    return {
        variable.name: tuple(flat[key] for key in variable.elements())
        for variable in active_variables(tuple(variables), flat)
    }


def to_flat(variables: Iterable[Variable], params: Params) -> dict[str, Any]:
    """Return the elements of the variables in ``params``, by element name."""
    return {
        key: value
        for variable in variables
        if variable.name in params
        for key, value in zip(variable.elements(), params[variable.name], strict=True)
    }
