"""Fit the model of an objective: choose warps, sample hyperparameters, condition on the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spearmint.gp.evidence import LogPosterior, Prior, default_prior
from spearmint.gp.hypers import posterior_mode, sample
from spearmint.gp.input_warp import InputWarp, fit_input_warp
from spearmint.gp.kernel import sq_differences
from spearmint.gp.numerics import Array
from spearmint.gp.output_warp import Warped, standardise, warps
from spearmint.gp.packed_triangles import pack
from spearmint.gp.posterior import Posterior, condition
from spearmint.gp.settings import Settings
from spearmint.gp.space import Space

# Maximum number of observations for fitting hyperparameters; fewer in many dimensions.
_HYPER_OBSERVATIONS = 250
# Maximum number of observations for fitting the input warp, which has two numbers per dimension.
_INPUT_WARP_OBSERVATIONS = 100
# For this fraction of the proposals the evidence of the GP selects the output warp, for the others
# the likelihood of independent normal values. On Levy's function (60 trials), the final value was
# above 1 in 5 of 10 runs with only the likelihood, in 2 of 6 with only the evidence, and in 0 of 10
# with both by turns.
_BY_EVIDENCE = 0.5


@dataclass(frozen=True)
class Data:
    """The data for fitting hyperparameters: rows ``kept`` of ``points`` (n, D), and the prior."""

    points: Array
    kept: NDArray[np.intp]
    is_category: NDArray[np.bool_]
    prior: Prior

    @cached_property
    def _sq(self) -> Array:
        return self._differences(self.points[self.kept])

    def _differences(self, points: Array) -> Array:
        return pack(sq_differences(points, points, self.is_category))

    def density(self, y: Array, input_warp: InputWarp | None = None) -> LogPosterior:
        """Return the log posterior of the hyperparameters given the values ``y`` (n,)."""
        sq = self._differences(input_warp(self.points[self.kept])) if input_warp else self._sq
        return LogPosterior(sq, y[self.kept], self.prior)


def fit(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
) -> Posterior:
    """Choose the warps, sample the hyperparameters, and condition on the data and the fantasies."""
    return fit_warped(space, points, y, pending, settings, rng)[0]


def fit_warped(
    space: Space,
    points: Array,
    y: Array,
    pending: Array,
    settings: Settings,
    rng: np.random.Generator,
) -> tuple[Posterior, Array]:
    """Return the posterior of :func:`fit`, and ``y`` in its units: warped and standardised."""
    n, n_dimensions = points.shape
    most = int(np.clip(np.sqrt(2e6 / n_dimensions), 64, _HYPER_OBSERVATIONS))
    kept = subset(y, most, rng) if n > most else np.arange(n)
    together = space.together(points) if space.conditions else None
    prior = default_prior(n_dimensions, noiseless=settings.noiseless, together=together)
    data = Data(points, kept, space.is_category, prior)
    values, mode = _warped(data, y, settings, rng)
    input_warp = None
    if settings.input_warp:
        mode, input_warp = _input_warp(data, values, mode, rng)
    density = data.density(values, input_warp)
    n_samples = min(settings.mcmc_iters, max(3, 100 * settings.mcmc_iters // n))
    posterior = condition(
        points,
        values,
        pending,
        sample(density, mode, rng, n_samples=n_samples, burnin=settings.burnin),
        space.is_category,
        n_fantasies=settings.pending_samples,
        rng=rng,
        input_warp=input_warp,
    )
    return posterior, values


def _warped(
    data: Data, y: Array, settings: Settings, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return ``y`` warped by the chosen power and standardised, and the hyperparameters' mode."""
    views = warps(y) if settings.warp else [Warped(standardise(y), 0.0)]
    chosen = max(views, key=lambda view: view.log_weight)
    density = data.density(chosen.values)
    mode = posterior_mode(density, data.prior.mean)
    if len(views) > 1 and rng.random() < _BY_EVIDENCE:
        columns = np.stack([view.values[data.kept] for view in views], axis=1)
        evidence = density.evidence_of(mode, columns) * len(y) / len(data.kept)
        chosen = views[int(np.argmax(evidence + [view.log_weight for view in views]))]
        mode = posterior_mode(data.density(chosen.values), mode)
    return chosen.values, mode


def _input_warp(
    data: Data, values: Array, mode: Array, rng: np.random.Generator
) -> tuple[Array, InputWarp | None]:
    """Return the mode of the hyperparameters under the most likely input warp, and the warp."""
    kept, few = data.kept, _INPUT_WARP_OBSERVATIONS
    if len(kept) > few:
        kept = kept[subset(values[kept], few, rng)]
    return fit_input_warp(data.points[kept], values[kept], data.is_category, data.prior, mode)


def some(n: int, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return sorted indices of at most ``most`` of ``n`` observations, chosen at random."""
    return np.arange(n) if n <= most else np.sort(rng.choice(n, most, replace=False))


def recent_subset(y: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return sorted indices of ``size`` observations: the best, the latest, others at random.

    Each of them is a third. Without the latest, a model forgets at once what it has just learned.
    """
    order = np.argsort(y, kind="stable")
    third = size // 3
    best, others = order[:third], np.sort(order[third:])
    drawn = rng.choice(others[: len(others) - third], size - 2 * third, replace=False)
    return np.sort(np.concatenate((best, drawn, others[len(others) - third :])))


def subset(y: Array, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return sorted indices of ``size`` observations: a third are the best, the others random."""
    order = np.argsort(y, kind="stable")
    best = size // 3
    others = rng.choice(order[best:], size - best, replace=False)
    return np.sort(np.concatenate((order[:best], others)))
