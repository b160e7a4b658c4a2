"""Several points from one model: each is conditioned on the points before it, as if they ran.

The first point of a batch is that of a single proposal. For each other point, the posterior of a
pool of candidates is updated by one column, and only the best candidates are refined:

==========  ============  =======================================================================
symbol      name in code  meaning
==========  ============  =======================================================================
x           ``point``     the point chosen last, with whitened covariances l = L^-1 k(x)
H           ``_columns``  whitened covariances of the pool, shape ``(S, m, N)``, and room for more
c           ``column``    (k(pool, x) - H l) / d, where d^2 = 1 + g - l' l
z           ``drawn``     whitened outcomes of x, one for each fantasy, shape ``(S, F)``
==========  ============  =======================================================================

The mean of the pool grows by c z', and its variance shrinks by c^2.

Source: the greedy batch is that of Ginsbourger, Le Riche and Carraro 2010 (Computational
Intelligence in Expensive Optimization Problems, ch. 6), with the fantasies of Snoek, Larochelle and
Adams 2012 (arXiv:1206.2944), section 3.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from spearmint.acquisition.factors import Sum
from spearmint.acquisition.log_ei import LogEI
from spearmint.acquisition.maximize import Acquisition, maximize
from spearmint.gp.growing import Growing
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import VARIANCE_FLOOR, Posterior
from spearmint.gp.space import Space
from spearmint.gp.triangles import LARGE

# Candidates from which starts are taken, those of them that are refined, and evaluations for that.
_LEADERS, _STARTS, _EVALUATIONS = 24, 4, 16
# Starts that are refined to the end in a large model. On 18 data sets, four of them gained .003 in
# log EI on average, for half as many evaluations again.
_FINALISTS_OF_LARGE = 2
# Columns for which memory is allocated at once: a copy for each point takes longer than its column.
_ROOM = 32


class Pool:
    """Candidates for the points of a batch, with their posterior given the points before."""

    def __init__(self, posterior: Posterior, points: Array, factor: Acquisition | None) -> None:
        """Predict at ``points`` (m, D); ``factor`` is the logarithm of a factor of EI."""
        self._growing = Growing(posterior)
        self._points, self._warped = points, posterior.warped(points)
        self._factor = factor
        self._log_factor = factor(points) if factor is not None else np.zeros(len(points))
        self._mean, half, self._left = posterior.whitened(points)
        self._known = half.shape[2]  # the columns of _columns that are in use
        self._columns = _with_room(half)

    @property
    def posterior(self) -> Posterior:
        """The posterior given the points before."""
        return self._growing.posterior

    def add(self, point: Array, n_fantasies: int, rng: np.random.Generator) -> None:
        """Condition on the outcome of ``point`` (D,), drawn from the posterior."""
        gp = self.posterior
        normals = _strata(len(gp.mean), max(n_fantasies, gp.alpha.shape[2]), rng)
        half, rest = self._growing.add(point, normals)
        known = self._columns[:, :, : self._known]
        covariance = gp.correlation_of(self._warped, gp.warped(point[None]))[:, :, 0]
        column = (covariance - (known @ half[:, :, None])[:, :, 0]) / rest[:, None]
        drawn = np.sqrt(gp.scale)[:, None] * normals
        self._mean = self._mean + column[:, :, None] * drawn[:, None, :]
        self._left = np.maximum(self._left - column**2, VARIANCE_FLOOR)
        if self._known == self._columns.shape[2]:
            self._columns = _with_room(self._columns)
        self._columns[:, :, self._known] = column
        self._known += 1

    def ranked(
        self, space: Space, rng: np.random.Generator, *, margin: float, refine: bool
    ) -> Array:
        """Return valid points in descending order of log EI; with ``refine``, refined ones."""
        log_ei = LogEI(self.posterior, margin=margin)
        value = log_ei.of(self._mean, self.posterior.scale[:, None] * self._left)
        pool = self._points[np.argsort(-(value + self._log_factor), kind="stable")]
        if not refine:
            return pool
        acquisition: Acquisition = log_ei
        if self._factor is not None:
            acquisition = Sum(acquisition, self._factor)
        refined = maximize(
            acquisition,
            space,
            pool[:_LEADERS],
            rng,
            n_starts=_STARTS,
            max_evaluations=_EVALUATIONS,
            n_finalists=_STARTS if self._growing.size < LARGE else _FINALISTS_OF_LARGE,
            is_ranked=True,
        )
        return np.concatenate((refined, pool[_LEADERS:]))


def _with_room(half: Array) -> Array:
    """Return a copy of ``half`` (S, m, N) with more columns, which have no value yet."""
    larger = np.empty((*half.shape[:2], half.shape[2] + _ROOM))
    larger[:, :, : half.shape[2]] = half
    return larger


def _strata(n_samples: int, n_fantasies: int, rng: np.random.Generator) -> Array:
    """Return standard normal draws ``(S, F)``, one in each of S x F equally likely intervals."""
    total = n_samples * n_fantasies
    uniform = (rng.permutation(total) + rng.random(total)) / total
    normal = ndtri(np.clip(uniform, 1e-6, 1.0 - 1e-6))
    return np.asarray(normal.reshape(n_samples, n_fantasies))
