"""GPEIOptChooser: expected improvement under a Gaussian process, hyperparameters integrated out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution

from spearmint.choosers.base import Chooser
from spearmint.choosers.history import History, common_space, history, trials_of
from spearmint.choosers.sobol import sobol_point
from spearmint.choosers.space import from_float
from spearmint.errors import InputError

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.gp.arrays import Array

# Sobol points before the first model: one more than dimensions, within these limits.
_MIN_INITIAL, _MAX_INITIAL = 3, 32
# Sobol points looked at for one that a small space has not seen yet.
_SOBOL_TRIES = 64


class GPEIOptChooser(Chooser):
    """Choose where a Gaussian process expects most improvement, running trials considered.

    Args:
        mcmc_iters: Samples of the hyperparameters; fewer are drawn beyond 100 observations.
        burnin: Sweeps of the sampler before the first sample.
        noiseless: Whether two evaluations of one point give the same value.
        pending_samples: Fantasies of the running trials for each sample.
        grid_subset: Candidates climbed by L-BFGS-B at most.
        warp: Whether to learn a monotone transformation of the objective.
        seed: Any whole number; default: a random one.
    """

    def __init__(
        self,
        *,
        mcmc_iters: int = 10,
        burnin: int = 6,
        noiseless: bool = False,
        pending_samples: int = 8,
        grid_subset: int = 20,
        warp: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed=seed)
        counts = {
            "mcmc_iters": (mcmc_iters, 1),
            "burnin": (burnin, 0),
            "pending_samples": (pending_samples, 1),
            "grid_subset": (grid_subset, 1),
        }
        for name, (value, least) in counts.items():
            if value < least:
                raise InputError(f"{name} is {value}, must be at least {least}")
        self.mcmc_iters = mcmc_iters
        self.burnin = burnin
        self.noiseless = noiseless
        self.pending_samples = pending_samples
        self.grid_subset = grid_subset
        self.warp = warp

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that all finished trials share."""
        super().infer_relative_search_space(study, trial)
        return common_space(trials_of(study, trial.number))

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the point of the largest expected improvement, at first a Sobol point."""
        space = dict(search_space)
        if not space:
            return {}
        past = history(study, trials_of(study, trial.number), space)
        rng = np.random.default_rng([self.seed, trial.number])
        n, n_pending = len(past.y), len(past.pending)
        initial = min(max(_MIN_INITIAL, len(space) + 1), _MAX_INITIAL)
        if n < 2 or n + n_pending < initial:
            # Where no point comes twice by chance, sample_independent does the same for less.
            if np.isinf(past.space.n_points):
                return {}
            point = self._initial_point(past, trial.number, rng)
        else:
            point = self._best_point(past, rng)
        values = past.space.values(point)
        return {k: from_float(d, v) for (k, d), v in zip(space.items(), values, strict=True)}

    def _initial_point(self, past: History, number: int, rng: np.random.Generator) -> Array:
        """Return the first Sobol point from ``number`` on that was not tried."""
        from spearmint.gp.search import first_new

        indices = range(number, number + _SOBOL_TRIES)
        cube = np.array([sobol_point(self.seed, i, len(past.space)) for i in indices])
        seen = np.concatenate((past.points, past.pending))
        return first_new(past.space, past.space.from_cube(cube), seen, rng)

    def _best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return the point of the largest expected improvement."""
        from spearmint.gp.search import Settings, next_point

        settings = Settings(
            mcmc_iters=self.mcmc_iters,
            burnin=self.burnin,
            noiseless=self.noiseless,
            pending_samples=self.pending_samples,
            grid_subset=self.grid_subset,
            warp=self.warp,
        )
        return next_point(past.space, past.points, past.y, past.pending, settings, rng)
