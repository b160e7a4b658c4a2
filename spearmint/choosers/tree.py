"""The parameters of a search with conditions or linear constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, _get_single_value
from optuna.trial import Trial

from spearmint.choosers.encoding import dimension, to_float
from spearmint.conditions import Condition, holds
from spearmint.gp.rows import Row
from spearmint.gp.space import Dimension, Space, Test
from spearmint.linear import LinearConstraint, violated


@dataclass(frozen=True)
class Tree:
    """Parameters with conditions or linear constraints, by element name.

    Attributes:
        distributions: All parameters, those that others need first.
        requirements: By name of each conditional parameter, all conditions that must hold.
        linear: Linear constraints, which all proposals meet.
    """

    distributions: Mapping[str, BaseDistribution]
    requirements: Mapping[str, tuple[Condition, ...]]
    linear: tuple[LinearConstraint, ...] = ()

    def is_active(self, name: str, params: Mapping[str, Any]) -> bool:
        """Return whether the parameter ``name`` is active at a point."""
        return holds(self.requirements.get(name, ()), params)

    def active(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``params`` without those that are inactive."""
        return {name: value for name, value in params.items() if self.is_active(name, params)}

    def key(self, params: Mapping[str, Any]) -> str:
        """Return a text that two points share only if all their searched values are equal."""
        return repr([*self.searched_at(params).items()])

    def searched_at(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the active ones of ``params`` that have more than one value, sorted by name."""
        every = {**self._single, **params}
        return {k: every[k] for k in self.searched if k in every and self.is_active(k, every)}

    @cached_property
    def _single(self) -> dict[str, Any]:
        known = self.distributions.items()
        return {name: _get_single_value(d) for name, d in known if d.single()}

    def is_inside(self, params: Mapping[str, Any]) -> bool:
        """Return whether a point meets the linear constraints of its active parameters."""
        return violated(self.linear, self.active({**self._single, **params})) is None

    def suggest(self, trial: Trial) -> None:
        """Ask the sampler of ``trial`` for its active parameters, parents first."""
        for name, distribution in self.distributions.items():
            if self.is_active(name, trial.params):
                trial._suggest(name, distribution)

    def is_whole(self, params: Mapping[str, Any]) -> bool:
        """Return whether ``params`` has all parameters that are active."""
        return all(
            name in params or not self.is_active(name, params) for name in self.distributions
        )

    @cached_property
    def searched(self) -> dict[str, BaseDistribution]:
        """The parameters with more than one value, sorted as those that trials have in common."""
        return {
            name: self.distributions[name]
            for name in sorted(self.distributions)
            if not self.distributions[name].single()
        }

    @cached_property
    def is_continuous(self) -> bool:
        """Whether no branch has finitely many points."""
        always = {k: d for k, d in self.searched.items() if k not in self.requirements}
        return bool(np.isinf(Space(tuple(map(dimension, always.values()))).n_points))

    def space(self, names: Iterable[str]) -> Space:
        """Return the space of ``names``, in this order.

        A parameter counts as always active if a condition needs one that is not among ``names``. A
        parent with a single value always has it. Linear constraints need all their parameters.
        """
        order = list(names)
        places = {name: i for i, name in enumerate(order)}
        conditions: list[tuple[int, tuple[Test, ...]]] = []
        for name in order:
            needed = self.requirements.get(name, ())
            tests = [c for c in needed if not self.distributions[c.parent].single()]
            if tests and all(c.parent in places for c in tests):
                at = tuple((places[c.parent], self._floats(c)) for c in tests)
                conditions.append((places[name], at))
        dimensions = tuple(dimension(self.distributions[n]) for n in order)
        rows = (self._row(each, places, dimensions) for each in self.linear)
        return Space(dimensions, tuple(conditions), tuple(row for row in rows if row is not None))

    def _row(
        self,
        constraint: LinearConstraint,
        places: Mapping[str, int],
        dimensions: Sequence[Dimension],
    ) -> Row | None:
        """Return a constraint on dimensions; None if it does not restrict them."""
        single = {n: w for n, w in constraint.weights if n in self._single and n not in places}
        weights = {places[n]: w for n, w in constraint.weights if n in places}
        if not weights or len(weights) + len(single) < len(constraint.weights):
            return None
        high = constraint.high - sum(w * float(self._single[n]) for n, w in single.items())
        largest = (
            abs(w) * max(abs(dimensions[d].low), abs(dimensions[d].high))
            for d, w in weights.items()
        )
        return Row(
            tuple(weights),
            tuple(weights.values()),
            high,
            is_equal=constraint.is_equal,
            is_strict=constraint.is_strict,
            is_whole=constraint.is_whole,
            size=abs(high) + sum(largest) or 1.0,
            text=constraint.text,
        )

    def _floats(self, condition: Condition) -> tuple[float, ...]:
        values = (to_float(self.distributions[condition.parent], v) for v in condition.values)
        return tuple(value for value in values if value is not None)
