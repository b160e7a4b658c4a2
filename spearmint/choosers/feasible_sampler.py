"""Samplers of Optuna under linear constraints, of which they know nothing."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from spearmint.choosers.inside import completed, drawn_inside
from spearmint.choosers.tree import Tree

if TYPE_CHECKING:
    from optuna.study import Study

# Number of points that the sampler is asked for before its last one is moved.
_TRIES = 16


class FeasibleSampler(BaseSampler):
    """Ask another sampler until its point is feasible; then move its last point.

    Args:
        sampler: The sampler.
        tree: The parameters, with linear constraints.
    """

    def __init__(self, sampler: BaseSampler, tree: Tree) -> None:
        self.sampler = sampler
        self._tree = tree

    def reseed_rng(self) -> None:
        """Reseed the sampler."""
        self.sampler.reseed_rng()

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return all parameters: they are chosen together."""
        return dict(self._tree.searched)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return a feasible point."""
        fixed = trial.system_attrs.get("fixed_params", {})
        for _ in range(_TRIES):
            point = self._sampled(study, trial, fixed)
            if self._tree.is_inside(point):
                return point
        rng = np.random.default_rng([trial.number, len(self._tree.searched)])
        every = {**drawn_inside(self._tree, rng), **point}  # also of other branches
        return completed(self._tree, every, fixed, rng)

    def _sampled(
        self, study: Study, trial: FrozenTrial, fixed: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the active parameters as Optuna would ask the sampler for them."""
        sampler, probe = self.sampler, copy.copy(trial)
        joint = sampler.infer_relative_search_space(study, probe)
        chosen = sampler.sample_relative(study, probe, joint)
        point: dict[str, Any] = {}
        for name, distribution in self._tree.distributions.items():
            if distribution.single() or not self._tree.is_active(name, point):
                continue
            if name in fixed or name in chosen:
                point[name] = fixed.get(name, chosen.get(name))
            else:
                point[name] = sampler.sample_independent(study, probe, name, distribution)
            probe.distributions = {**probe.distributions, name: distribution}
            probe.params = dict(point)
        return point

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value that the sampler proposes."""
        return self.sampler.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Call the sampler before a trial."""
        self.sampler.before_trial(study, trial)

    def after_trial(
        self,
        study: Study,
        trial: FrozenTrial,
        state: TrialState,
        values: Sequence[float] | None,
    ) -> None:
        """Call the sampler after a trial."""
        self.sampler.after_trial(study, trial, state, values)
