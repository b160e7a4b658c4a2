"""The parameters of a search in which some are active only where others have certain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, _get_single_value
from optuna.trial import Trial

from spearmint.choosers.encoding import dimension, to_float
from spearmint.conditions import Condition, holds
from spearmint.gp.space import Space, Test


@dataclass(frozen=True)
class Tree:
    """Conditional parameters, by element name.

    Attributes:
        distributions: All parameters, those that others need first.
        requirements: By name of each conditional parameter, all conditions that must hold.
    """

    distributions: Mapping[str, BaseDistribution]
    requirements: Mapping[str, tuple[Condition, ...]]

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
        parent with a single value always has it.
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
        return Space(tuple(dimension(self.distributions[n]) for n in order), tuple(conditions))

    def _floats(self, condition: Condition) -> tuple[float, ...]:
        values = (to_float(self.distributions[condition.parent], v) for v in condition.values)
        return tuple(value for value in values if value is not None)
