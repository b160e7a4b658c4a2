"""Convert Optuna's distributions and values to dimensions and coordinates, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from spearmint.errors import InputError
from spearmint.gp.space import Dimension


def dimension(distribution: BaseDistribution) -> Dimension:
    """Return the dimension of ``distribution``, which must have more than one value."""
    if isinstance(distribution, CategoricalDistribution):
        return Dimension(n_choices=len(distribution.choices))
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return Dimension(
            low=float(distribution.low),
            high=float(distribution.high),
            log=distribution.log,
            step=float(distribution.step or 0.0),
        )
    raise InputError(
        f"unsupported distribution {type(distribution).__name__}",
        "Use a float, int or categorical distribution.",
    )


def to_native(distribution: BaseDistribution, dim: Dimension, uniform: float) -> Any:
    """Return the value of ``distribution`` at ``uniform`` in [0, 1)."""
    at = dim.from_cube(np.array([uniform]))
    return from_float(distribution, float(dim.value(at)[0]))


def from_float(distribution: BaseDistribution, value: float) -> Any:
    """Convert a number to a value of ``distribution``; for a category it is the index."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(value)]
    if isinstance(distribution, IntDistribution):
        return round(value)
    return value


def to_float(distribution: BaseDistribution, value: Any) -> float | None:
    """Convert a parameter's value to a number, the index for a category; None if invalid."""
    if isinstance(distribution, CategoricalDistribution):
        try:
            return float(distribution.to_internal_repr(value))
        except ValueError:
            return None
    if isinstance(distribution, FloatDistribution | IntDistribution):
        return float(value) if distribution.low <= value <= distribution.high else None
    return None
