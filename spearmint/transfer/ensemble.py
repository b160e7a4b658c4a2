"""The model of a search that adds the models of earlier searches to its mean.

=========  =============  ==========================================================================
symbol     name in code   meaning
=========  =============  ==========================================================================
z          ``values``     observations of this search, warped and standardised, shape ``(n,)``
mu_i(x)    ``models``     mean of a Gaussian process fitted to earlier search i, in its own units
w_i        ``weight``     weights by rank, see :mod:`spearmint.transfer.weights`
b          ``slope``      least squares slope of z over sum_i w_i mu_i, between 0 and 1
t(x)       ``trend``      b sum_i w_i mu_i(x)
=========  =============  ==========================================================================

The Gaussian process of this search is fitted to z - t(x), and its posterior mean gets t(x) back.
Without any weight it is exactly the model without earlier searches. Source: weights of Feurer,
Letham and Bakshy 2018 (arXiv:1802.02219); the stack of Golovin et al. 2017 (KDD, "Google Vizier",
section 3.3): in contrast to a weighted sum of posteriors, it interpolates what was observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spearmint.acquisition.log_ei import NegativeMean
from spearmint.gp.fit import fit, subset
from spearmint.gp.numerics import Array, one_blas_thread
from spearmint.gp.output_warp import standardise, warps
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Space
from spearmint.transfer.match import Task
from spearmint.transfer.weights import LEAST_RANKED, left_out_means, weights

_SAMPLES, _BURNIN = 3, 4
# Maximum number of trials of this search that are ranked.
_RANKED = 128
# Where the trend explains all observations, the model is still unsure by this much of their spread.
_DOUBT = 0.1
_SEED = 20180206


class EarlierModel:
    """The mean of a Gaussian process that is fitted to an earlier search, as a trend."""

    def __init__(self, space: Space, task: Task) -> None:
        """Fit the model to the dimensions that both searches have."""
        self._shared = task.shared
        shared = Space(tuple(space.dimensions[d] for d in task.shared))
        points, rng = task.points[:, task.shared], np.random.default_rng([_SEED, len(task.y)])
        # Coordinates outside of the bounds have no input warp.
        settings = Settings(mcmc_iters=_SAMPLES, burnin=_BURNIN, input_warp=False)
        with one_blas_thread():
            posterior = fit(shared, points, task.y, points[:0], settings, rng)
        self._mean = NegativeMean(posterior.thinned(_SAMPLES))

    def __call__(self, points: Array) -> Array:
        """Return the means at ``points`` (m, D), shape ``(m,)``."""
        return -self._mean(points[:, self._shared])

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the means and their gradients, shape ``(m, D)``."""
        value, slope = self._mean.with_gradient(points[:, self._shared])
        gradient = np.zeros_like(points)
        gradient[:, self._shared] = -slope
        return -value, gradient


@dataclass(frozen=True)
class WeightedSum:
    """The sum of models, each times its weight."""

    models: tuple[EarlierModel, ...]
    weight: Array

    def __call__(self, points: Array) -> Array:
        """Return the sums at ``points`` (m, D), shape ``(m,)``."""
        return np.asarray(self.weight @ np.stack([model(points) for model in self.models]))

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the sums and their gradients, shape ``(m, D)``."""
        values, slopes = zip(*(m.with_gradient(points) for m in self.models), strict=True)
        gradient = np.tensordot(self.weight, np.stack(slopes), axes=1)
        return np.asarray(self.weight @ np.stack(values)), np.asarray(gradient)


class Ensemble:
    """The models of earlier searches, for one search.

    Attributes:
        weights: Weight of each by rank in the last model; empty before the first one.
    """

    weights: tuple[float, ...] = ()

    def __init__(self, models: Sequence[EarlierModel]) -> None:
        """Set the models, at least one."""
        self._models = tuple(models)

    def fit(
        self,
        space: Space,
        points: Array,
        y: Array,
        pending: Array,
        settings: Settings,
        rng: np.random.Generator,
    ) -> Posterior:
        """Fit the model of the search as :func:`spearmint.gp.fit.fit` does, with a trend."""
        views = warps(y) if settings.warp else []
        values = max(views, key=lambda v: v.log_weight).values if views else standardise(y)
        trend = self.trend(space, points, values, noiseless=settings.noiseless)
        if trend is None:
            return fit(space, points, y, pending, settings, rng)
        rest = values - trend(points)
        plain = replace(settings, warp=False)
        posterior = fit(space, points, rest, pending, plain, rng)
        return _with_trend(posterior, trend, rest, np.concatenate((points, pending)))

    def is_proven(self, space: Space, points: Array, y: Array) -> bool:
        """Return whether an earlier search ranks the observations of this one better than chance.

        A model is then useful before the first points of a search are complete.
        """
        if len(y) < LEAST_RANKED:
            return False
        return self.trend(space, points, standardise(y), noiseless=False) is not None

    def trend(
        self, space: Space, points: Array, values: Array, *, noiseless: bool
    ) -> WeightedSum | None:
        """Return the weighted models of earlier searches; None if no model has any weight."""
        rng = np.random.default_rng([_SEED, len(values)])
        if len(values) > _RANKED:
            kept = subset(values, _RANKED, rng)
            points, values = points[kept], values[kept]
        means = np.stack([model(points) for model in self._models])
        left_out = left_out_means(space, points, values, noiseless=noiseless)
        weight = weights(values, means, left_out, rng)
        self.weights = tuple(map(float, weight))
        weight = weight * _slope(weight @ means, values)
        used = np.flatnonzero(weight)
        if not len(used):
            return None
        return WeightedSum(tuple(self._models[i] for i in used), weight[used])


def _slope(trend: Array, values: Array) -> float:
    """Return the slope of ``values`` over ``trend``, as if one more observation had none."""
    centred = trend - trend.mean()
    return float(np.clip(centred @ values / (centred @ centred + 1.0), 0.0, 1.0))


def _with_trend(posterior: Posterior, trend: WeightedSum, rest: Array, tried: Array) -> Posterior:
    """Return the posterior of standardised ``rest`` in the units of ``rest``, plus ``trend``."""
    unit = float(rest.std())
    moved = replace(
        posterior,
        alpha=posterior.alpha * unit,
        mean=posterior.mean * unit + float(rest.mean()),
        scale=posterior.scale * max(unit, _DOUBT) ** 2,
        trend=trend,
    )
    return moved.compared_with(tried)
