"""CMAChooser: CMA-ES, with its state replayed from the trials. Needs the library cmaes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution

from spearmint.choosers.model_chooser import ModelChooser
from spearmint.errors import InputError
from starmint import extra_command

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.choosers.history import History
    from spearmint.gp.numerics import Array

# Number of draws in which to look for an untried point, if all parameters are integers or have
# steps: draws repeat when the spread is small.
_DRAWS = 64
# Maximum number of redraws of a point out of bounds; in many dimensions all draws are outside.
_REDRAWS, _FEW_REDRAWS, _MANY_DIMENSIONS = 100, 2, 30


class CMAChooser(ModelChooser):
    """CMA-ES: draw from a normal distribution that is updated after each generation of trials.

    No state is stored: each proposal recomputes the distribution from the finished trials, grouped
    into generations in the order of their numbers. Trials of any origin therefore count, including
    imported trials. When a run has converged, the next run starts at a random point with twice the
    population. Categories are chosen by the Sobol sequence.

    Args:
        sigma0: Initial standard deviation, as a fraction of each parameter's range.
        population_size: Trials per generation. 0 means 4 + 3 ln D, where D is the number of
            parameters.
        seed: Any integer. Default: random.

    Raises:
        InputError: The library cmaes is not installed.

    Source: Hansen 2016 (arXiv:1604.00772); restarts: Auger and Hansen 2005 (IPOP-CMA-ES, IEEE CEC
    2005); points that CMA-ES did not draw itself: Hansen 2011 (arXiv:1110.4181).
    """

    def __init__(
        self, *, sigma0: float = 0.25, population_size: int = 0, seed: int | None = None
    ) -> None:
        super().__init__(seed=seed)
        if not find_spec("cmaes"):
            raise InputError("CMAChooser needs cmaes", f"Install it: {extra_command('cma')}")
        if not 0.0 < sigma0 <= 10.0:
            raise InputError(f"invalid sigma0 {sigma0}: expected above 0 and at most 10")
        if population_size != 0 and population_size < 3:
            raise InputError(f"invalid population_size {population_size}: expected 0 or at least 3")
        self.sigma0 = sigma0
        self.population_size = population_size

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the numeric parameters that all complete trials have."""
        space = super().infer_relative_search_space(study, trial)
        return {k: d for k, d in space.items() if not _is_category(d)}

    def n_initial(self, n_dimensions: int) -> int:
        """Return 0: the initial distribution needs no trials."""
        return 0

    def best_point(self, past: History, rng: np.random.Generator) -> Array:
        """Return a draw from the distribution after the finished trials."""
        from spearmint.acquisition.next_point import first_new
        from spearmint.feasible import within
        from spearmint.gp.numerics import one_blas_thread

        with one_blas_thread():
            optimizer = self._replay(past)
            optimizer.reseed_rng(int(rng.integers(1 << 32)))
            space = past.space
            n_draws = 1 if np.isinf(space.n_points) and not space.linear else _DRAWS
            draws = space.snap(np.array([optimizer.ask() for _ in range(n_draws)]))
            draws = within(space, draws, rng) if space.linear else draws
        seen = np.concatenate((past.points, past.pending))
        if _has_categories(past.trials[-1]):
            # The same numbers with another category are a different point.
            seen = seen[:0]
        return first_new(space, draws, seen, rng)

    def _replay(self, past: History) -> Any:
        """Return a ``cmaes.CMA`` after all complete generations of finished trials."""
        from scipy.stats import rankdata

        # CMA-ES uses only the order of the values; ranks are finite and well separated.
        ranks = rankdata(past.y)
        optimizer = self._start(len(past.space), run=0, population_size=self.population_size)
        run = at = 0
        while at + optimizer.population_size <= len(ranks):
            end = at + optimizer.population_size
            generation = zip(_clipped(past.points[at:end], optimizer), ranks[at:end], strict=True)
            optimizer.tell([(point, float(rank)) for point, rank in generation])
            at = end
            if optimizer.should_stop():
                run += 1
                optimizer = self._start(len(past.space), run, 2 * optimizer.population_size)
        return optimizer

    def _start(self, n_dimensions: int, run: int, population_size: int) -> Any:
        """Return a new ``cmaes.CMA``; run 0 starts in the middle, later runs at a random point."""
        from cmaes import CMA

        middle = np.full(n_dimensions, 0.5)
        random = np.random.default_rng([self.seed, run]).random(n_dimensions)
        return CMA(
            mean=random if run else middle,
            sigma=self.sigma0,
            bounds=np.tile([0.0, 1.0], (n_dimensions, 1)),
            population_size=population_size or None,
            n_max_resampling=_REDRAWS if n_dimensions < _MANY_DIMENSIONS else _FEW_REDRAWS,
            seed=0,
        )


def _is_category(distribution: BaseDistribution) -> bool:
    return isinstance(distribution, CategoricalDistribution)


def _has_categories(trial: FrozenTrial) -> bool:
    return any(_is_category(d) and not d.single() for d in trial.distributions.values())


def _clipped(points: Array, optimizer: Any) -> Array:
    """Return ``points``, moved towards the mean if they are too far away for a draw.

    With y = (x - mean) / sigma, |C^-1/2 y| is limited to sqrt(D) + 2 D / (D + 2), so that points
    of other origin do not make the step size explode. Source: Hansen 2011 (arXiv:1110.4181),
    clipping of injected points with the default bound.
    """
    axes, lengths = optimizer._eigen_decomposition()
    away = points - optimizer.mean
    # An overflow on a collapsed axis means an infinite distance.
    with np.errstate(over="ignore", divide="ignore"):
        far = np.linalg.norm(away @ axes / lengths, axis=1) / optimizer._sigma
    n = points.shape[1]
    most = np.sqrt(n) + 2.0 * n / (n + 2.0)
    return np.asarray(
        optimizer.mean + away * np.minimum(1.0, most / np.maximum(far, most))[:, None]
    )
