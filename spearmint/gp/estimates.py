"""Estimate the noise-free values of observed points, and how sure the estimates are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.gp.fit import fit_warped
from spearmint.gp.numerics import Array, one_blas_thread
from spearmint.gp.posterior import Posterior
from spearmint.gp.settings import Settings
from spearmint.gp.space import Space


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Estimates at the observed points, in the units of the observations.

    Attributes:
        mean: Expected value of the objective without noise, shape ``(n,)``.
        sd: Standard deviation of ``mean``, shape ``(n,)``.
        noise_sd: Standard deviation of the noise of one observation at each point, shape ``(n,)``.
        noise_share: The noise in standard deviations of the warped observations.
    """

    mean: Array
    sd: Array
    noise_sd: Array
    noise_share: float


def estimates(space: Space, points: Array, y: Array, rng: np.random.Generator) -> Estimates:
    """Return the estimates at ``points`` by a Gaussian process, averaged over hyperparameters.

    Args:
        space: The D dimensions.
        points: Observed points, shape ``(n, D)``, n >= 2 and not much above 500.
        y: Finite observations, shape ``(n,)``, to be minimised.
        rng: Source of all randomness.

    Source: Rasmussen and Williams 2006, eqs. 2.25 and 2.26.
    """
    with one_blas_thread():
        posterior, warped = fit_warped(space, points, y, points[:0], Settings(), rng)
        mean, sd = _moments(posterior, points)
    noise = posterior.noise_sd
    return Estimates(
        mean=_unwarped(mean, warped, y),
        sd=0.5 * (_unwarped(mean + sd, warped, y) - _unwarped(mean - sd, warped, y)),
        noise_sd=0.5 * (_unwarped(mean + noise, warped, y) - _unwarped(mean - noise, warped, y)),
        noise_share=noise,
    )


def _moments(posterior: Posterior, points: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation at ``points``, over all samples, in warped units."""
    means, variances = posterior.predict(points)
    variance = variances.mean(axis=0) + means[:, :, 0].var(axis=0)
    return means[:, :, 0].mean(axis=0), np.sqrt(variance)


def _unwarped(values: Array, warped: Array, y: Array) -> Array:
    """Return ``values`` in the units of ``y``: linear between the observations, and beyond them."""
    knots, first = np.unique(warped, return_index=True)
    heights = y[first]
    if len(knots) < 2:
        return np.full_like(values, y[0])
    slope = (heights[[1, -1]] - heights[[0, -2]]) / (knots[[1, -1]] - knots[[0, -2]])
    below, above = np.minimum(values - knots[0], 0.0), np.maximum(values - knots[-1], 0.0)
    return np.asarray(np.interp(values, knots, heights) + below * slope[0] + above * slope[1])
