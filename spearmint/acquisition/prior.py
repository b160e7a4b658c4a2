"""The user's guess where the best point is, as a factor of the acquisition that is forgotten.

==========  ==================  ===================================================================
symbol      name in code        meaning
==========  ==================  ===================================================================
c, s        ``guess``           coordinate of the guess, and its spread, by dimension
n           ``n_observed``      finished trials
beta        ``_STRENGTH``       trials after which the guess counts once
==========  ==================  ===================================================================

The factor is pi(x)^(beta / n), where pi(x) = e + (1 - e) exp(-sum_d (x_d - c_d)^2 / (2 s_d^2)) over
the active dimensions with a guess. Its exponent falls with the number of trials, so that a wrong
guess delays the search and does not misdirect it. Source: Hvarfner et al. 2022 (piBO,
arXiv:2204.11051). The floor e, the chance that the guess is wrong, bounds what that can cost.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

_STRENGTH = 10.0  # beta of piBO, for searches of about 100 trials
_FLOOR = 0.01
_LEAST = 1e-6  # smallest spread; the squares of distances in much smaller ones overflow


class LogPrior:
    """The logarithm of the factor; it is 0 at the guess and in dimensions that are inactive."""

    def __init__(
        self, space: Space, guesses: Mapping[int, tuple[float, float]], n_observed: int
    ) -> None:
        """Set the coordinate and the spread of each guess, by dimension."""
        self._space = space
        self._at = np.array(sorted(guesses), dtype=np.intp)
        centres, spreads = zip(*(guesses[d] for d in self._at), strict=True)
        self._centre, self._spread = np.array(centres), np.maximum(spreads, _LEAST)
        self._weight = _STRENGTH / max(n_observed, 1)

    def __call__(self, points: Array) -> Array:
        """Return the logarithms at ``points`` (m, D), shape ``(m,)``."""
        return self.with_gradient(points)[0]

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the logarithms and their gradients, shape ``(m, D)``."""
        z = (points[:, self._at] - self._centre) / self._spread
        z = z * self._space.active(points)[:, self._at]
        bell = (1.0 - _FLOOR) * np.exp(-0.5 * np.sum(z * z, axis=1))
        gradient = np.zeros_like(points)
        share = bell / (_FLOOR + bell)
        gradient[:, self._at] = -self._weight * share[:, None] * z / self._spread
        return self._weight * np.log(_FLOOR + bell), gradient

    def moved(self, points: Array) -> Array:
        """Return valid points at the guess, with the other coordinates of ``points`` (m, D)."""
        out = points.copy()
        out[:, self._at] = self._centre
        return self._space.snap(out)
