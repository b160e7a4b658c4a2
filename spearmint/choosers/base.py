"""The base class of choosers: a seed, one objective, parameters sampled independently."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from optuna.distributions import BaseDistribution, _get_single_value
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers.encoding import dimension, to_native
from spearmint.choosers.inside import completed, inside_points
from spearmint.choosers.sobol import sobol_point
from spearmint.errors import InputError

if TYPE_CHECKING:
    from optuna.study import Study

    from spearmint.choosers.tree import Tree
    from spearmint.transfer.earlier import EarlierSearch


# Number of draws in which to look for an untried point of a conditional search.
_DRAWS = 64


class Chooser(BaseSampler):
    """Base class of choosers: a sampler with no state except its seed.

    :class:`spearmint.choosers.testing.ChooserContract` tests these rules:

    - The same trials, seed and trial number give the same proposal, also in another process.
    - Trials that run at the same time have different points, as long as the space has enough.
    - Every proposal is valid, for any history: no trials, or failed, pruned, infinite and running
      trials.
    - Maximising f gives the same proposals as minimising -f.
    - A proposal changes nothing else in the study.

    Example:
        A chooser without a model overrides ``uniform``. A chooser with a model subclasses
        :class:`spearmint.choosers.ModelChooser` and implements ``best_point``:

        >>> class MiddleOutChooser(Chooser):
        ...     def uniform(self, number: int, place: int) -> float:
        ...         return 0.5 + (super().uniform(number, place) - 0.5) * min(1.0, number / 50)
    """

    several_objectives = False
    """Whether a study can have several objectives."""

    tree: Tree | None = None
    """The parameters of a search with conditions or linear constraints; the study sets it."""

    guesses: Mapping[str, tuple[float, float]] = MappingProxyType({})
    """The user's guesses, by name: the value, and its spread as a share of the range."""

    references: Sequence[float] = ()
    """Of several objectives, the worst values of use, negated if maximised; NaN if not given."""

    learns = False
    """Whether the model uses ``earlier``."""

    earlier: Sequence[EarlierSearch] = ()
    """Earlier searches to learn from."""

    learned: Sequence[float] = ()
    """Weight of each of ``earlier`` in the last model; empty before the first one."""

    restart: int = 0
    """The restart that the last proposal belongs to, from 1; 0 if it does not look elsewhere."""

    repeats: bool = False
    """Whether the last proposal repeats an earlier point, because the values are noisy."""

    total: int | None = None
    """Number of trials after which the search ends; None if it is not known."""

    def __init__(self, *, seed: int | None = None) -> None:
        """Set ``seed``, or draw a random seed if it is None."""
        self._notices: list[str] = []
        if seed is None:
            seed = secrets.randbits(63)
        # numpy does not accept negative seeds.
        self.seed = seed if seed >= 0 else (1 << 64) - seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled jointly.

        In this class there are none, unless a branch of the search has finitely many points, or
        there are linear constraints.
        """
        if len(study.directions) > 1 and not self.several_objectives:
            raise InputError(
                f"{type(self).__name__} supports one objective, but the study has "
                f"{len(study.directions)}",
                "Use GPEIOptChooser, NSGAIISampler or TPESampler.",
            )
        tree = self.tree
        is_joint = tree is not None and (not tree.is_continuous or tree.linear)
        return dict(tree.searched) if tree is not None and is_joint else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values for ``search_space``."""
        if not search_space:
            return {}
        return self._with_fixed(trial, next(self._untried(study, (), trial.number)))

    def _with_fixed(self, trial: FrozenTrial, chosen: dict[str, Any]) -> dict[str, Any]:
        """Return ``chosen``, made feasible together with the values that were queued for it."""
        fixed = trial.system_attrs.get("fixed_params", {})
        if self.tree is None or not self.tree.linear or not fixed or not chosen:
            return chosen
        return completed(self.tree, chosen, fixed, np.random.default_rng([self.seed, trial.number]))

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of one parameter, from its position and the trial number."""
        place = self._place(trial, param_name)
        uniform = self.uniform(trial.number, place)
        return to_native(param_distribution, dimension(param_distribution), uniform)

    def _place(self, trial: FrozenTrial, name: str) -> int:
        """Return the coordinate of the parameter ``name``, which ``trial`` has not got yet."""
        if self.tree is None:
            return sum(not other.single() for other in trial.distributions.values())
        every = self.tree.distributions  # the same coordinate in each branch
        return [key for key, other in every.items() if not other.single()].index(name)

    def ask_many(
        self,
        study: Study,
        distributions: Mapping[str, BaseDistribution],
        *,
        ahead: Sequence[Mapping[str, Any]] = (),
    ) -> Iterator[dict[str, Any]]:
        """Yield the parameters of new trials without end, each as if those before it were running.

        The trials are read in this call; each point is computed when it is asked for. A chooser
        with a model fits it once, so later points do not see results that arrive after this call.
        The first point is the one of ``study.ask``. Nothing is stored.

        Args:
            study: The study, of this chooser's only objective.
            distributions: The parameters of a trial, in the order of ``study.ask``.
            ahead: Parameters of trials that are not stored yet, which also count as running.
        """
        number = study._storage.get_n_trials(study._study_id)
        known = [
            create_trial(
                state=TrialState.RUNNING,
                params=dict(p),
                distributions={name: d for name, d in distributions.items() if name in p},
            )
            for p in ahead
        ]
        first = number + len(known)
        joint = self.joint_many(study, known, first)
        return (
            self._complete(study, first + i, distributions, chosen)
            for i, chosen in enumerate(joint)
        )

    def joint_many(
        self, study: Study, ahead: Sequence[FrozenTrial], number: int
    ) -> Iterator[dict[str, Any]]:
        """Yield the values that are chosen jointly, for trials ``number``, ``number`` + 1, ..."""
        space = self.infer_relative_search_space(study, placeholder(number))
        return self._untried(study, ahead, number) if space else repeat({})

    def _untried(
        self, study: Study, ahead: Sequence[FrozenTrial], number: int
    ) -> Iterator[dict[str, Any]]:
        """Yield untried points of the tree; tried ones if its draws find no other."""
        tree, study = cast("Tree", self.tree), getattr(study, "_study", study)
        seen: set[str] = set()
        if not tree.is_continuous:
            trials = [t for t in study.get_trials(deepcopy=False) if t.number != number]
            seen = {tree.key(t.params) for t in (*trials, *ahead)}
        while True:
            untried = (p for p in self._draws(tree, number) if tree.key(p) not in seen)
            point = next(untried, None) or next(self._draws(tree, number))
            seen.add(tree.key(point))
            yield point
            number += 1

    def _draws(self, tree: Tree, number: int) -> Iterator[dict[str, Any]]:
        """Yield points of trial ``number``: feasible ones if there are linear constraints."""
        if tree.linear:
            return inside_points(tree, self.uniform, self.seed, number)
        return (self._drawn(tree, number + (k << 32)) for k in range(_DRAWS))

    def _drawn(self, tree: Tree, number: int) -> dict[str, Any]:
        """Return point ``number`` of a conditional search, with its inactive parameters."""
        searched = [(k, d) for k, d in tree.distributions.items() if not d.single()]
        return {
            name: to_native(distribution, dimension(distribution), self.uniform(number, place))
            for place, (name, distribution) in enumerate(searched)
        }

    def _complete(
        self,
        study: Study,
        number: int,
        distributions: Mapping[str, BaseDistribution],
        chosen: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return ``chosen`` with the parameters that are sampled independently."""
        params: dict[str, Any] = {}
        trial = placeholder(number)
        for name, distribution in distributions.items():
            if distribution.single():
                params[name] = _get_single_value(distribution)
            elif name in chosen:
                params[name] = chosen[name]
            else:
                params[name] = self.sample_independent(study, trial, name, distribution)
            trial.distributions = {**trial.distributions, name: distribution}
        return params if self.tree is None else self.tree.active(params)

    def notices(self) -> list[str]:
        """Return messages for the user since the last call; proposals do not depend on them."""
        texts, self._notices = self._notices, []
        return texts

    def uniform(self, number: int, place: int) -> float:
        """Return coordinate ``place`` of point ``number`` in the unit cube, in [0, 1)."""
        return float(sobol_point(self.seed, number, place + 1)[place])


def placeholder(number: int) -> FrozenTrial:
    """Return a trial with nothing but its number, for methods of Optuna's samplers."""
    trial = create_trial(state=TrialState.RUNNING)
    trial.number = number
    return trial
