"""Slice sampling along given directions. Source: Neal 2003 (Annals of Statistics 31:705).

A sweep can also have elliptical updates, which move all parameters together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spearmint.gp.elliptical import StudentT, elliptical_update
from spearmint.gp.numerics import Array

# Interval in units of a direction's length, and how often it can be widened (Neal's w and m).
WIDTH = 3.0
MAX_STEPS_OUT = 4
# Number of elliptical updates in each sweep.
_ELLIPSES = 4
# The interval shrinks by about half each time; after 60 times no float is left inside it.
_MAX_SHRINKS = 60


def slice_sample(
    log_density: Callable[[Array], float],
    start: Array,
    directions: Array,
    rng: np.random.Generator,
    *,
    n_samples: int,
    burnin: int = 0,
    per_sweep: int | None = None,
    around: StudentT | None = None,
) -> Array:
    """Return ``n_samples`` states of a chain from ``start``, one after each sweep.

    A sweep updates the state along each row of ``directions`` once, in random order, after four
    elliptical updates if ``around`` is given. The density is invariant for any directions; a good
    length is one standard deviation of the density.

    Args:
        log_density: Log density up to a constant; ``-inf`` outside the support, finite at
            ``start``.
        start: First state, shape ``(k,)``.
        directions: Directions of the updates, shape ``(m, k)``.
        rng: Source of all randomness.
        n_samples: Number of returned states.
        burnin: Number of sweeps before the first returned state.
        per_sweep: Number of random directions per sweep. Default: all.
        around: Distribution that resembles the density. Default: no elliptical updates.
    """
    state, height = start, log_density(start)
    used = min(per_sweep or len(directions), len(directions))
    states = np.empty((n_samples, len(start)))
    for sweep in range(-burnin, n_samples):
        if around is not None:
            for _ in range(_ELLIPSES):
                state, height = elliptical_update(log_density, state, height, around, rng)
        for i in rng.permutation(len(directions))[:used]:
            state, height = _update(log_density, state, height, directions[i], rng)
        if sweep >= 0:
            states[sweep] = state
    return states


def _update(
    log_density: Callable[[Array], float],
    state: Array,
    height: float,
    direction: Array,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Return the next state along ``direction`` and its log density (Neal, figures 3 and 5)."""
    level = height - rng.exponential()
    left = -WIDTH * rng.random()
    right = left + WIDTH
    to_left = int(rng.integers(MAX_STEPS_OUT + 1))
    for _ in range(to_left):
        if log_density(state + left * direction) <= level:
            break
        left -= WIDTH
    for _ in range(MAX_STEPS_OUT - to_left):
        if log_density(state + right * direction) <= level:
            break
        right += WIDTH
    for _ in range(_MAX_SHRINKS):
        step = left + (right - left) * rng.random()
        proposal = state + step * direction
        found = log_density(proposal)
        if found > level:
            return proposal, found
        left, right = (step, right) if step < 0.0 else (left, step)
    return state, height
