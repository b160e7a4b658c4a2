"""Elliptical slice sampling: one update moves all parameters along an ellipse.

=======  ===============  =========================================================================
symbol   name in code     meaning
=======  ===============  =========================================================================
pi       ``log_density``  density to sample
T        ``around``       Student t distribution that resembles pi, with nu degrees of freedom
z        ``white``        state in coordinates in which T is spherical
s        ``variance``     variance of a normal mixture: given s, T is normal with variance s
=======  ===============  =========================================================================

The density is invariant for any T; the better T resembles it, the fewer evaluations an update takes
and the more independent its states are. Tails of T are heavier than those of a normal distribution,
so that pi / T stays small far away. Source: Nishihara, Murray and Adams 2014 (JMLR 15:2087),
algorithm 2; the update given s: Murray, Adams and MacKay 2010 (AISTATS 9:541), figure 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spearmint.gp.numerics import Array

_DEGREES_OF_FREEDOM = 5.0
# The bracket of angles shrinks by about half each time; after 60 times no float is left inside it.
_MAX_SHRINKS = 60


@dataclass(frozen=True)
class StudentT:
    """A Student t distribution with location ``centre`` (k,) and scale matrix R R' (k, k)."""

    centre: Array
    root: Array

    @cached_property
    def _inverse_root(self) -> Array:
        return np.asarray(np.linalg.inv(self.root))

    def whitened(self, state: Array) -> Array:
        """Return z of ``state`` = centre + R z."""
        return np.asarray(self._inverse_root @ (state - self.centre))

    def state(self, white: Array) -> Array:
        """Return centre + R z."""
        return np.asarray(self.centre + self.root @ white)

    def log_density(self, white: Array) -> float:
        """Return the log density at z, up to a constant."""
        power = -0.5 * (_DEGREES_OF_FREEDOM + len(white))
        return power * float(np.log1p(white @ white / _DEGREES_OF_FREEDOM))

    def variance(self, white: Array, rng: np.random.Generator) -> float:
        """Draw s given z; it has an inverse gamma distribution."""
        shape = 0.5 * (_DEGREES_OF_FREEDOM + len(white))
        return 0.5 * (_DEGREES_OF_FREEDOM + float(white @ white)) / float(rng.gamma(shape))


def elliptical_update(
    log_density: Callable[[Array], float],
    state: Array,
    height: float,
    around: StudentT,
    rng: np.random.Generator,
) -> tuple[Array, float]:
    """Return the next state and its log density, given ``state`` and its log density ``height``."""
    white = around.whitened(state)
    other = np.sqrt(around.variance(white, rng)) * rng.standard_normal(len(white))
    level = height - around.log_density(white) - rng.exponential()
    high = 2.0 * np.pi * rng.random()
    angle, low = high, high - 2.0 * np.pi
    for _ in range(_MAX_SHRINKS):
        rotated = np.cos(angle) * white + np.sin(angle) * other
        proposal = around.state(rotated)
        found = log_density(proposal)
        if found - around.log_density(rotated) > level:
            return proposal, found
        low, high = (angle, high) if angle < 0.0 else (low, angle)
        angle = low + (high - low) * rng.random()
    return state, height
