"""The condition, in SQL, that a trial has all parameters that are active at its point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages._rdb import models
from sqlalchemy import ColumnElement, and_, case, func, or_

from spearmint.choosers.tree import Tree
from spearmint.conditions import Condition

_PARAMS: Any = models.TrialParamModel.__table__


def is_whole(names: Sequence[str], tree: Tree | None) -> ColumnElement[bool]:
    """Return the condition for a group of rows: the parameters of a trial that are in ``names``."""
    if tree is None:
        return func.count() == len(names)
    always = [name for name in names if name not in tree.requirements]
    # The number of rows that are always there, and one condition for each conditional parameter.
    required = func.sum(case((_PARAMS.c.param_name.in_(always), 1), else_=0)) == len(always)
    conditional = [
        or_(_any(_PARAMS.c.param_name == name), *(~_holds(c, tree.distributions) for c in needed))
        for name, needed in tree.requirements.items()
    ]
    return and_(required, *conditional)


def _any(row: ColumnElement[bool]) -> ColumnElement[bool]:
    return func.max(case((row, 1), else_=0)) == 1


def _holds(
    condition: Condition, distributions: Mapping[str, BaseDistribution]
) -> ColumnElement[bool]:
    parent = distributions[condition.parent]
    stored = [parent.to_internal_repr(value) for value in condition.values]
    named = _PARAMS.c.param_name == condition.parent
    return _any(and_(named, _PARAMS.c.param_value.in_(stored)))
