"""The base class of choosers with a model: selects the trials to fit, and the first points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution

from spearmint.choosers.base import Chooser
from spearmint.choosers.encoding import from_float
from spearmint.choosers.history import History, common_space, history, trials_of
from spearmint.choosers.sobol import sobol_point

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.gp.numerics import Array

# Number of Sobol points before the first model: the dimensions plus one, within these limits.
_MIN_INITIAL, _MAX_INITIAL = 3, 32
# Number of Sobol points in which to look for an untried point of a small space.
_SOBOL_TRIES = 64


class ModelChooser(Chooser):
    """A chooser that fits a model to the finished trials, after a few Sobol points.

    Subclasses implement :meth:`best_point`; :mod:`spearmint.choosers.testing` has an example.
    """

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that all complete trials have."""
        super().infer_relative_search_space(study, trial)
        return common_space(trials_of(study, trial.number))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the point that the model proposes; a Sobol point for the first trials."""
        space = dict(search_space)
        if not space:
            return {}
        past = self._history(study, trials_of(study, trial.number), space)
        rng = np.random.default_rng([self.seed, trial.number])
        n, n_pending = len(past.tried), len(past.pending)
        few = n < 2 or n + n_pending < self.n_initial(len(space))
        if few or not len(past.y):
            # In an infinite space no point repeats, and sample_independent gives the same point
            # faster.
            if np.isinf(past.space.n_points):
                return {}
            point = self._initial_point(past, trial.number, rng)
        else:
            point = self.best_point(past, rng)
        values = past.space.values(point)
        return {k: from_float(d, v) for (k, d), v in zip(space.items(), values, strict=True)}

    def _history(
        self, study: Study, trials: Sequence[FrozenTrial], space: dict[str, BaseDistribution]
    ) -> History:
        """Return the trials to which the model is fitted."""
        return history(study, trials, space)

    def n_initial(self, n_dimensions: int) -> int:
        """Return the number of trials before the first model is fitted."""
        return min(max(_MIN_INITIAL, n_dimensions + 1), _MAX_INITIAL)

    def _initial_point(self, past: History, number: int, rng: np.random.Generator) -> Array:
        """Return the first untried Sobol point, starting at ``number``."""
        from spearmint.acquisition.next_point import first_new

        indices = range(number, number + _SOBOL_TRIES)
        cube = np.array([sobol_point(self.seed, i, len(past.space)) for i in indices])
        seen = np.concatenate((past.tried, past.pending))
        return first_new(past.space, past.space.from_cube(cube), seen, rng)

    @abstractmethod
    def best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return the point that the model proposes, valid in ``past.space``, shape ``(D,)``.

        Args:
            past: At least two finished trials, of which at least one has a value.
            rng: The only source of randomness, seeded by the chooser's seed and the trial number.
        """
