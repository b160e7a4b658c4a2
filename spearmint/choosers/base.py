"""The base class of choosers: a seed, one objective, parameters sampled independently."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution, _get_single_value
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState, create_trial

from spearmint.choosers.encoding import dimension, to_native
from spearmint.choosers.sobol import sobol_point
from spearmint.errors import InputError

if TYPE_CHECKING:
    from optuna.study import Study


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

    def __init__(self, *, seed: int | None = None) -> None:
        """Set ``seed``, or draw a random seed if it is None."""
        if seed is None:
            seed = secrets.randbits(63)
        # numpy does not accept negative seeds.
        self.seed = seed if seed >= 0 else (1 << 64) - seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that are sampled jointly; empty in this class."""
        if len(study.directions) > 1 and not self.several_objectives:
            raise InputError(
                f"{type(self).__name__} supports one objective, but the study has "
                f"{len(study.directions)}",
                "Use GPEIOptChooser, NSGAIISampler or TPESampler.",
            )
        return {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values for ``search_space``; empty in this class."""
        return {}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Return the value of one parameter, from its position and the trial number."""
        place = sum(not other.single() for other in trial.distributions.values())
        uniform = self.uniform(trial.number, place)
        return to_native(param_distribution, dimension(param_distribution), uniform)

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
                state=TrialState.RUNNING, params=dict(p), distributions=dict(distributions)
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
        """Yield the values that are chosen jointly; none in this class."""
        self.infer_relative_search_space(study, placeholder(number))
        return repeat({})

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
        return params

    def uniform(self, number: int, place: int) -> float:
        """Return coordinate ``place`` of point ``number`` in the unit cube, in [0, 1)."""
        return float(sobol_point(self.seed, number, place + 1)[place])


def placeholder(number: int) -> FrozenTrial:
    """Return a trial with nothing but its number, for methods of Optuna's samplers."""
    trial = create_trial(state=TrialState.RUNNING)
    trial.number = number
    return trial
