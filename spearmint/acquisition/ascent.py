"""Refine several starts at once, each by its own quasi-Newton steps, in few evaluations.

One evaluation is a call for all starts, most of whose time does not depend on their number. Joint
L-BFGS-B has one step length for all starts, and one approximation of all their curvatures; here
each start has its own:

========  ==============  =========================================================================
symbol    name in code    meaning
========  ==============  =========================================================================
m, d      shapes          starts; coordinates that move
x         ``at``          coordinates now, in [0, 1], shape ``(m, d)``
H         ``inverse``     approximation of minus the inverse second derivatives, ``(m, d, d)``
t         ``length``      fraction of the step H g that is tried, shape ``(m,)``
s, y      ``moved``,      change of x by an accepted step, and minus the change of the gradient
          ``change``
========  ==============  =========================================================================

Source: the update of H is BFGS, Nocedal and Wright 2006 (Numerical Optimization), eq. 6.17, scaled
first by eq. 6.20, in coordinates divided by the length scales of the model. A step is accepted if
it gains a small part of the linear gain (Armijo, eq. 3.4); otherwise the next one is shorter, by
quadratic interpolation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.acquisition.maximize import Acquisition
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

# Largest change of a coordinate: of the first step of a start, whose curvature is not known yet,
# and of the others.
_FIRST, _LARGEST = 0.05, 0.25
# Least gain of an accepted step, as a part of the linear one; and limits of the factor by which a
# step is shortened.
_ARMIJO = 1e-4
_SHORTER = (0.1, 0.5)
# Factor of H after a step along which the function is not concave.
_LONGER = 4.0
# The ascent ends when no start expects a larger gain than this.
_LEAST_GAIN = 1e-4


@dataclass
class _State:
    """The starts: coordinates, values and gradients now, and what is known of the curvature.

    ``is_scaled``, shape ``(m,)``, says whether H is more than a multiple of ``shape`` (d, d).
    """

    at: Array
    value: Array
    slope: Array
    inverse: Array
    length: Array
    is_scaled: np.ndarray[tuple[int], np.dtype[np.bool_]]
    shape: Array


def ascend(
    acquisition: Acquisition, space: Space, starts: Array, max_evaluations: int, scales: Array
) -> tuple[Array, Array]:
    """Return ``starts`` (m, D) refined, and their values (m,), none of which is lower than before.

    Levels and categories do not change. ``scales`` (D,) are the distances over which the function
    varies, up to a common factor.
    """
    points, moving = starts.copy(), space.movable
    if not len(moving):
        return points, acquisition(points)
    # Categories do not change, so neither does a branch that depends on one.
    is_active = space.active(points)[:, moving] if space.conditions else None

    def evaluate(at: Array) -> tuple[Array, Array]:
        points[:, moving] = at
        values, gradients = acquisition.with_gradient(points)
        slopes = gradients[:, moving]
        return values, slopes if is_active is None else slopes * is_active

    state = _begin(points[:, moving], evaluate(points[:, moving]), scales[moving])
    for _ in range(max_evaluations - 1):
        to, gain = _proposed(state)
        if gain.max() < _LEAST_GAIN:
            break
        _take(state, to, *evaluate(to))
    points[:, moving] = state.at
    return points, state.value


def _begin(at: Array, found: tuple[Array, Array], scales: Array) -> _State:
    value, slope = found
    m = len(at)
    shape = np.diag(scales**2)
    scale = _FIRST / np.maximum(np.abs(slope @ shape).max(axis=1), 1e-300)
    inverse = scale[:, None, None] * shape
    return _State(at, value, slope, inverse, np.ones(m), np.zeros(m, dtype=bool), shape)


def _proposed(state: _State) -> tuple[Array, Array]:
    """Return where the next step of each start leads, and the gain that it expects."""
    at, slope = state.at, state.slope
    is_free = ~(((at <= 0.0) & (slope < 0.0)) | ((at >= 1.0) & (slope > 0.0)))
    free = slope * is_free
    step = (state.inverse @ free[:, :, None])[:, :, 0] * is_free
    largest = np.abs(step).max(axis=1)
    step *= (state.length * _LARGEST / np.maximum(largest, _LARGEST))[:, None]
    to = np.clip(at + step, 0.0, 1.0)
    return to, np.sum(slope * (to - at), axis=1)


def _take(state: _State, to: Array, value: Array, slope: Array) -> None:
    """Take the steps ``to`` that gain, with the curvature that they show; shorten the others."""
    moved = to - state.at
    linear = np.sum(state.slope * moved, axis=1)
    is_better = value >= state.value + _ARMIJO * linear
    _learn(state, moved, state.slope - slope, is_better)
    shortfall = 2.0 * np.maximum(linear - (value - state.value), 1e-300)
    shorter = state.length * np.clip(linear / shortfall, *_SHORTER)
    state.length = np.where(is_better, 1.0, shorter)
    state.at = np.where(is_better[:, None], to, state.at)
    state.value = np.where(is_better, value, state.value)
    state.slope = np.where(is_better[:, None], slope, state.slope)


def _learn(state: _State, moved: Array, change: Array, is_better: Array) -> None:
    """Update H of the starts whose step is taken."""
    product = np.sum(moved * change, axis=1)
    squared = np.sum((change @ state.shape) * change, axis=1)
    is_concave = is_better & (product > 1e-9 * np.sum(moved * moved, axis=1))
    state.inverse[is_better & ~is_concave] *= _LONGER
    if not is_concave.any():
        return
    fresh = is_concave & ~state.is_scaled
    state.inverse[fresh] = (product[fresh] / squared[fresh])[:, None, None] * state.shape
    state.is_scaled |= is_concave
    share = np.where(is_concave, 1.0 / np.where(is_concave, product, 1.0), 0.0)
    known = (state.inverse @ change[:, :, None])[:, :, 0]
    factor = share * (1.0 + share * np.sum(change * known, axis=1))
    cross = share[:, None, None] * (moved[:, :, None] * known[:, None, :])
    state.inverse += factor[:, None, None] * (moved[:, :, None] * moved[:, None, :])
    state.inverse -= cross + cross.transpose(0, 2, 1)
