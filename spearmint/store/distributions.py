"""Convert variables to Optuna distributions, and flat parameters to vectors and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.choosers.tree import Tree
from spearmint.conditions import active_variables, parents_first, requirements
from spearmint.model import Kind, Params, Variable

Distributions = dict[str, BaseDistribution]


def distributions(variables: Iterable[Variable]) -> Distributions:
    """Return one distribution per element of each variable, in the order of config.pb."""
    return {key: _distribution(variable) for variable in variables for key in variable.elements()}


def tree_of(variables: Sequence[Variable]) -> Tree | None:
    """Return the parameters of a search with conditional variables; None if it has none."""
    needed = requirements(tuple(variables))
    if not needed:
        return None
    by_element = {
        key: needed[variable.name]
        for variable in variables
        if variable.name in needed
        for key in variable.elements()
    }
    return Tree(distributions(parents_first(variables)), by_element)


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
