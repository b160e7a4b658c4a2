"""GPEIOptChooser: expected improvement under a Gaussian process, averaged over hyperparameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from spearmint.choosers.history import History, history
from spearmint.choosers.learning import model_of
from spearmint.choosers.limits import constrained_points, limits_of
from spearmint.choosers.model_chooser import ModelChooser
from spearmint.choosers.objectives import front_points
from spearmint.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from optuna.distributions import BaseDistribution
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.acquisition.maximize import Acquisition
    from spearmint.acquisition.next_point import OnFit
    from spearmint.acquisition.prior import LogPrior
    from spearmint.acquisition.replicates import Replicates
    from spearmint.gp.numerics import Array
    from spearmint.gp.settings import Settings


class GPEIOptChooser(ModelChooser):
    """Choose the point where a Gaussian process expects most improvement, given running trials.

    Args:
        mcmc_iters: Number of hyperparameter samples; fewer are drawn beyond 100 observations.
        burnin: Number of sweeps of the sampler before the first sample.
        noiseless: Whether two evaluations of the same point give the same value.
        pending_samples: Number of fantasies of the running trials for each sample.
        grid_subset: Maximum number of candidates that L-BFGS-B refines.
        warp: Whether to learn a monotone transformation of the objective.
        input_warp: Whether to learn a monotone transformation of each numeric parameter.
        elsewhere: Whether most trials look for another minimum after convergence.
        replicates: Whether trials repeat good points under noise, in spaces of few points.
        seed: Any integer. Default: random.
    """

    selects_trials = True
    models_limits = True
    several_objectives = True
    learns = True
    looks_elsewhere = True
    repeats_points = True

    def __init__(
        self,
        *,
        mcmc_iters: int = 10,
        burnin: int = 6,
        noiseless: bool = False,
        pending_samples: int = 8,
        grid_subset: int = 20,
        warp: bool = True,
        input_warp: bool = True,
        elsewhere: bool = True,
        replicates: bool = True,
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
                raise InputError(f"invalid {name} {value}: expected at least {least}")
        self.mcmc_iters = mcmc_iters
        self.burnin = burnin
        self.noiseless = noiseless
        self.pending_samples = pending_samples
        self.grid_subset = grid_subset
        self.warp = warp
        self.input_warp = input_warp
        self.elsewhere = elsewhere
        self.replicates = replicates

    def _history(
        self, study: Study, trials: Sequence[FrozenTrial], space: dict[str, BaseDistribution]
    ) -> History:
        """Return the trials, those that violate measured constraints with their values."""
        return history(study, trials, space, limits=self.models_limits, tree=self.tree)

    def _points(self, past: History, number: int) -> Iterator[Array | None]:
        """Yield the points of trials ``number`` and later; None for a Sobol point of the trial."""
        if not self.elsewhere or not self.looks_elsewhere or self._is_early(past):
            return super()._points(past, number)
        from spearmint.choosers.elsewhere import Model, points_with_restarts

        left = math.inf if self.total is None else self.total - len(past.tried) - len(past.pending)
        least = self.n_initial(len(past.space))
        note = self._notices.append
        model = Model(self.seed, least, left, self._rng, self.best_points, note, self._mark)
        return points_with_restarts(model, past, number) or super()._points(past, number)

    def _mark(self, restart: int) -> None:
        self.restart = restart

    def best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return the point with the largest expected improvement."""
        return next(self.best_points(past, iter([rng])))

    def best_points(
        self,
        past: History,
        rngs: Iterator[np.random.Generator],
        on_fit: OnFit | None = None,
    ) -> Iterator[Array]:
        """Yield the points with the largest expected improvement, all from one fit."""
        from spearmint.acquisition.next_point import next_points

        rng = next(rngs)
        settings = self._settings()
        limits = limits_of(past) if self.models_limits else None
        prior = _prior(past)
        if past.losses.shape[1] > 1:
            factor = _product(self._factor(past, settings, rng), prior)
            return front_points(past, limits, settings, chain((rng,), rngs), factor)
        if limits is not None:
            factor = _product(self._factor(past, settings, rng), prior)
            return constrained_points(past, limits, settings, chain((rng,), rngs), factor)
        points, y = self._objective(past, settings, rng)
        factor = self._factor(past, settings, rng)
        every = chain((rng,), rngs)
        return next_points(
            past.space,
            points,
            y,
            past.pending,
            settings,
            every,
            factor=factor,
            prior=prior,
            model=model_of(past),
            on_fit=on_fit,
            replicates=self._replicates(past),
        )

    def _replicates(self, past: History) -> Replicates | None:
        """Return the points that can be repeated; None if no trial is a repetition."""
        if not self.replicates or not self.repeats_points or self.noiseless:
            return None
        from spearmint.choosers.replicating import replicates_of

        return replicates_of(past, self._notices.append, self._mark_repeated)

    def _mark_repeated(self) -> None:
        self.repeats = True

    def _settings(self) -> Settings:
        """Return the settings of the search for the next point."""
        from spearmint.gp.settings import Settings

        return Settings(
            mcmc_iters=self.mcmc_iters,
            burnin=self.burnin,
            noiseless=self.noiseless,
            pending_samples=self.pending_samples,
            grid_subset=self.grid_subset,
            warp=self.warp,
            input_warp=self.input_warp,
        )

    def _objective(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return the points and values to which the model of the objective is fitted."""
        return past.points, past.y

    def _factor(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> Acquisition | None:
        """Return the log of a factor of the expected improvement; None means a factor of 1."""
        return None


def _prior(past: History) -> LogPrior | None:
    """Return the user's guess as a factor of the acquisition; None if there is none."""
    from spearmint.acquisition.prior import LogPrior

    return LogPrior(past.space, past.guesses, len(past.tried)) if past.guesses else None


def _product(factor: Acquisition | None, prior: LogPrior | None) -> Acquisition | None:
    from spearmint.acquisition.factors import Sum

    return Sum(factor, prior) if factor is not None and prior is not None else factor or prior


class GPEIChooser(GPEIOptChooser):
    """Choose the Sobol point where a Gaussian process expects most improvement.

    Args:
        mcmc_iters, burnin, noiseless, pending_samples, warp, input_warp, seed: See
            :class:`spearmint.choosers.GPEIOptChooser`.
        grid_size: Number of Sobol points to evaluate; each proposal uses new points.
    """

    def __init__(
        self,
        *,
        mcmc_iters: int = 10,
        burnin: int = 6,
        noiseless: bool = False,
        pending_samples: int = 8,
        grid_size: int = 4096,
        warp: bool = True,
        input_warp: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            mcmc_iters=mcmc_iters,
            burnin=burnin,
            noiseless=noiseless,
            pending_samples=pending_samples,
            warp=warp,
            input_warp=input_warp,
            elsewhere=False,
            replicates=False,
            seed=seed,
        )
        if grid_size < 1:
            raise InputError(f"invalid grid_size {grid_size}: expected at least 1")
        self.grid_size = grid_size

    def _settings(self) -> Settings:
        """Return the settings of a search without refinement."""
        return replace(super()._settings(), grid_size=self.grid_size)
