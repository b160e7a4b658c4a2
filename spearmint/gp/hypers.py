"""Sample length scales and noise: the mode by L-BFGS-B, then a few slice sampling sweeps.

There is no state between calls. The chain starts at the posterior mode, so a short burn-in is
enough. The step length is based on the width of the prior, not on the curvature at the mode. With
few observations the mode is often a narrow spike with little posterior mass, and a chain with steps
based on its curvature would stay there.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import minimize

from spearmint.gp.evidence import LogPosterior, Prior
from spearmint.gp.numerics import Array
from spearmint.gp.slice_sampling import slice_sample

# Maximum number of directions per sweep; more dimensions are updated in several sweeps.
_PER_SWEEP = 16
# Length of a direction in prior standard deviations. The sampler's interval is three lengths.
_STEP = 0.5


class Density(Protocol):
    """A log density with its gradient; its prior has the bounds."""

    prior: Prior

    def with_gradient(self, theta: Array) -> tuple[float, Array]:
        """Return the log density at ``theta`` and its gradient."""
        ...


def posterior_mode(density: Density, start: Array, *, max_evaluations: int = 60) -> Array:
    """Return the local mode of ``density`` that L-BFGS-B finds from ``start``."""

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = density.with_gradient(theta)
        # L-BFGS-B can backtrack from a large finite value, but not from infinity.
        return (-value, -gradient) if np.isfinite(value) else (1e25, np.zeros_like(theta))

    prior = density.prior
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(prior.lower, prior.upper, strict=True)),
        options={"maxfun": max_evaluations, "maxiter": max_evaluations, "ftol": 1e-6},
    )
    return np.clip(found.x, prior.lower, prior.upper)


def sample(
    density: LogPosterior, mode: Array, rng: np.random.Generator, *, n_samples: int, burnin: int
) -> Array:
    """Return ``n_samples`` rows of theta, sampled from ``density`` by a chain from ``mode``."""
    if not np.isfinite(density(mode)):
        return np.tile(mode, (n_samples, 1))
    directions = np.diag(_STEP * density.prior.std)
    return slice_sample(
        density,
        mode,
        directions,
        rng,
        n_samples=n_samples,
        burnin=burnin,
        per_sweep=_PER_SWEEP,
    )
