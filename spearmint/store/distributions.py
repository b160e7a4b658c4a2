"""Variables of config.pb as Optuna distributions, and trial parameters back as vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.model import Kind, Params, Variable

Distributions = dict[str, BaseDistribution]


def distributions(variables: Iterable[Variable]) -> Distributions:
    """Return one distribution for each element of each variable, in the order of the file."""
    return {key: _distribution(variable) for variable in variables for key in variable.elements()}


def _distribution(variable: Variable) -> BaseDistribution:
    if variable.kind is Kind.ENUM:
        return CategoricalDistribution(variable.options)
    if variable.kind is Kind.INT:
        return IntDistribution(int(variable.low), int(variable.high), log=variable.log)
    return FloatDistribution(variable.low, variable.high, log=variable.log)


def to_params(variables: Iterable[Variable], flat: Mapping[str, Any]) -> Params:
    """Return vectors by variable name; elements missing from ``flat`` make a KeyError."""
    return {
        variable.name: tuple(flat[key] for key in variable.elements()) for variable in variables
    }


def to_flat(variables: Iterable[Variable], params: Params) -> dict[str, Any]:
    """Return the elements of the variables that ``params`` holds, by element name."""
    return {
        key: value
        for variable in variables
        if variable.name in params
        for key, value in zip(variable.elements(), params[variable.name], strict=True)
    }
