"""The base class of choosers: a seed, one objective, parameters sampled independently."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from spearmint.choosers.encoding import dimension, to_native
from spearmint.choosers.sobol import sobol_point
from spearmint.errors import InputError

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial


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
        if len(study.directions) > 1:
            raise InputError(
                f"{type(self).__name__} supports one objective, but the study has "
                f"{len(study.directions)}",
                "Use NSGAIISampler or TPESampler.",
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

    def uniform(self, number: int, place: int) -> float:
        """Return coordinate ``place`` of point ``number`` in the unit cube, in [0, 1)."""
        return float(sobol_point(self.seed, number, place + 1)[place])
