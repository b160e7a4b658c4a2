"""Several points from one model: each is conditioned on the points before it, as if they ran.

The first point of a batch is that of a single proposal. For each other point, the posterior of a
pool of candidates is updated by one column, and only the best candidates are refined. What they
become takes their place in the pool, so that the next point continues from there.

==========  ============  =======================================================================
symbol      name in code  meaning
==========  ============  =======================================================================
x           ``point``     the point chosen last, with whitened covariances l = L^-1 k(x)
H           ``_columns``  whitened covariances of the pool, shape ``(S, m, N)``, and room for more
c           ``column``    (k(pool, x) - H l) / d, where d^2 = 1 + g - l' l
z           ``drawn``     whitened outcomes of x, one for each fantasy, shape ``(S, F)``
==========  ============  =======================================================================

The mean of the pool grows by c z', and its variance shrinks by c^2. Each point of a batch lowers
the expected improvement of the others, so an earlier value of a candidate is a bound: only
candidates whose bound is among the best are evaluated. This is the lazy greedy algorithm of Minoux
1978 (Optimization Techniques, LNCIS 7:234).

Source: the greedy batch is that of Ginsbourger, Le Riche and Carraro 2010 (Computational
Intelligence in Expensive Optimization Problems, ch. 6), with the fantasies of Snoek, Larochelle and
Adams 2012 (arXiv:1206.2944), section 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from spearmint.acquisition.ascent import ascend
from spearmint.acquisition.factors import Sum
from spearmint.acquisition.log_ei import LogEI
from spearmint.acquisition.maximize import STEPPING, Acquisition, apart, maximize, step
from spearmint.gp.growing import Growing
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import VARIANCE_FLOOR, Posterior
from spearmint.gp.space import Space
from spearmint.gp.triangles import LARGE

# Candidates from which starts are taken, those of them that are refined, and evaluations for that.
_LEADERS, _STARTS, _EVALUATIONS = 64, 6, 8
# The same in a large model, where each start takes time; and under linear constraints.
_STARTS_OF_LARGE = 4
_LINEAR_STARTS, _LINEAR_EVALUATIONS, _LINEAR_FINALISTS_OF_LARGE = 4, 16, 2
# Columns for which memory is allocated at once: a copy for each point takes longer than its column.
_ROOM = 32
# Candidates that are evaluated at once.
_BLOCK = 128


class Pool:
    """Candidates for the points of a batch, with their posterior given the points before."""

    def __init__(self, posterior: Posterior, points: Array, factor: Acquisition | None) -> None:
        """Predict at ``points`` (m, D); ``factor`` is the logarithm of a factor of EI."""
        self._growing = Growing(posterior)
        self._points = points.copy()
        self._warped = posterior.warped(self._points)
        self._factor = factor
        self._log_factor = factor(points) if factor is not None else np.zeros(len(points))
        self._bound = np.full(len(points), np.inf)  # of log EI without a margin, and the factor
        blocks = range(0, len(points), _BLOCK)  # which stay in the cache
        parts = [posterior.whitened(points[i : i + _BLOCK]) for i in blocks]
        self._mean, half, self._left = (
            np.concatenate(each, axis=1) for each in zip(*parts, strict=True)
        )
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
        order = self._order(log_ei, is_bound=margin == 0.0)
        if not refine:
            return self._points[order]
        acquisition: Acquisition = log_ei
        if self._factor is not None:
            acquisition = Sum(acquisition, self._factor)
        leaders = order[:_LEADERS]
        rest = self._points[order[_LEADERS:]]
        if space.linear:
            return np.concatenate((self._slid(acquisition, space, leaders, rng), rest))
        n_starts = _STARTS if self._growing.size < LARGE else _STARTS_OF_LARGE
        starts = leaders[apart(self._points[leaders], n_starts)]
        return np.concatenate((self._refined(acquisition, space, starts, rng), rest))

    def _order(self, log_ei: LogEI, *, is_bound: bool) -> NDArray[np.intp]:
        """Return the candidates in descending order of log EI, exact for the first ones.

        Their values are bounds of later ones if ``is_bound``.
        """
        by_bound = np.argsort(-self._bound, kind="stable")
        values, scale = self._bound.copy(), self.posterior.scale[:, None]
        for end in range(_BLOCK, len(values) + _BLOCK, _BLOCK):
            some, left_out = by_bound[end - _BLOCK : end], by_bound[end : end + 1]
            value = log_ei.of(self._mean[:, some], scale * self._left[:, some])
            values[some] = value + self._log_factor[some]
            bound = self._bound[left_out].max(initial=-np.inf)
            if np.count_nonzero(values[by_bound[:end]] >= bound) >= _LEADERS:
                break
        if is_bound:
            self._bound = values
        return np.argsort(-values, kind="stable")

    def _slid(
        self,
        acquisition: Acquisition,
        space: Space,
        leaders: NDArray[np.intp],
        rng: np.random.Generator,
    ) -> Array:
        """Return points refined under linear constraints, best first, then the leaders."""
        is_large = self._growing.size >= LARGE
        return maximize(
            acquisition,
            space,
            self._points[leaders],
            rng,
            n_starts=_LINEAR_STARTS,
            max_evaluations=_LINEAR_EVALUATIONS,
            n_finalists=_LINEAR_FINALISTS_OF_LARGE if is_large else _LINEAR_STARTS,
            is_ranked=True,
        )

    def _refined(
        self,
        acquisition: Acquisition,
        space: Space,
        starts: NDArray[np.intp],
        rng: np.random.Generator,
    ) -> Array:
        """Return points refined from the candidates ``starts``, best first, and replace these."""
        scales = _scales(self.posterior)
        ends, values = ascend(acquisition, space, self._points[starts], _EVALUATIONS, scales)
        snapped = space.snap(ends)
        if not np.array_equal(snapped, ends):
            snapped = np.concatenate((snapped, self._points[starts]))
            values = acquisition(snapped)
        top = snapped
        self._replace(starts, snapped[: len(starts)], values[: len(starts)])
        if len(space.fixed):
            best = np.argsort(-values, kind="stable")[:STEPPING]
            stepped = step(acquisition, space, top[best], rng)
            stepped = ascend(acquisition, space, stepped, _EVALUATIONS // 2, scales)[0]
            top = np.concatenate((space.snap(stepped), top))
            values = acquisition(top)
        return np.asarray(top[np.argsort(-values, kind="stable")])

    def _replace(self, starts: NDArray[np.intp], ends: Array, values: Array) -> None:
        """Replace candidates by their ``ends``; those that lead to the same point come last."""
        order = np.argsort(-values, kind="stable")
        kept = order[apart(ends[order], len(order))]
        rows, points = starts[kept], ends[kept]
        mean, half, left = self.posterior.whitened(points)
        self._points[rows], self._warped[rows] = points, self.posterior.warped(points)
        self._mean[:, rows], self._left[:, rows] = mean, left
        self._columns[:, rows, : self._known] = half[:, :, : self._known]
        if self._factor is not None:
            self._log_factor[rows] = self._factor(points)
        self._bound[starts] = -np.inf
        self._bound[rows] = np.inf


def _scales(posterior: Posterior) -> Array:
    """Return a typical length scale of each dimension, (D,), at most 1."""
    typical = np.exp(-0.5 * np.log(posterior.weights).mean(axis=0))
    return np.asarray(np.minimum(typical, 1.0))


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
