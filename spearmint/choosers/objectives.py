"""Several objectives: points that enlarge the volume that the Pareto front dominates.

Each objective has its own Gaussian process. For two objectives, the expected hypervolume
improvement is exact for each sample of the hyperparameters. For more, it is a sum over random
directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spearmint.choosers.history import History
from spearmint.choosers.limits import Limits, feasibility, most_feasible
from spearmint.pareto import front

if TYPE_CHECKING:
    from spearmint.acquisition.maximize import Acquisition
    from spearmint.gp.numerics import Array
    from spearmint.gp.posterior import Posterior
    from spearmint.gp.settings import Settings

# The reference point is beyond the front by this share of the range of all trials. By the extent of
# the front itself, a front of a few trials at one end would never grow to the other end.
_BEYOND = 0.1
_OTHERS = 0.05
# A reference of the user that no trial reaches is moved this far beyond the closest trial.
_CLOSE = 0.1
# A reference of the user is at most this many standard deviations away from the mean. The volume
# of three and more objectives has no digits left for an improvement from about 1e12 on.
_FAR = 1e6
# With two objectives, this share of the proposals, chosen at random, has the worst values of all
# trials as the reference point. They find the ends of the front: on ZDT2 a front of a few trials at
# one end did not grow without them. With three objectives (DTLZ2) they made the result worse.
_WIDE_SHARE = 0.25
# Maximum number of observations in the models, and the number to which more are reduced.
_MOST, _KEPT = 1000, 500
_NEAR, _ROUGH, _LIKELY = 5, 3, float(np.log(0.5))


def front_points(
    past: History,
    limits: Limits | None,
    settings: Settings,
    rngs: Iterator[np.random.Generator],
    factor: Acquisition | None,
) -> Iterator[Array]:
    """Yield the points with the largest expected improvement of the Pareto front.

    Args:
        past: The trials, with at least two objectives.
        limits: Their gaps; None without constraints.
        settings: Settings of the model and the search.
        rngs: Source of randomness, one for each point.
        factor: Logarithm of a factor of the expected improvement.
    """
    from spearmint.acquisition.factors import Sum

    if limits is not None and not limits.feasible.any():
        yield from most_feasible(past, limits, settings, rngs)
        return
    rng = next(rngs)
    product = feasibility(past, limits, settings, rng) if limits is not None else None
    given = [each for each in (product, factor) if each is not None]
    counts = limits.feasible if limits is not None else np.ones(len(past.y), dtype=bool)
    inside = counts & past.space.meets(past.points, loose=True)
    counts = inside if inside.any() else counts
    kept = _kept(past.losses, counts, rng)
    both = reduce(Sum, given) if given else None
    model = _Front(past, kept, counts, product, both, settings)
    while True:
        point = model.best(rng)
        yield point
        model.add(point)
        rng = next(rngs)


def _kept(losses: Array, counts: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the rows to model: of many, those on the front, the latest, and others at random."""
    if len(losses) <= _MOST:
        return np.arange(len(losses))
    best = np.flatnonzero(counts)[_front(losses[counts])][: _KEPT // 2]
    latest = np.arange(len(losses) - _KEPT // 4, len(losses))
    known = np.union1d(best, latest)
    others = np.setdiff1d(np.arange(len(losses)), known)
    return np.union1d(known, rng.choice(others, _KEPT - len(known), replace=False))


def _front(losses: Array) -> list[int]:
    return front([tuple(map(float, row)) for row in losses])


class _Front:
    """The models of all objectives. A running trial has the values that they predict.

    Source: the "kriging believer" of Ginsbourger, Le Riche and Carraro 2010.
    """

    def __init__(
        self,
        past: History,
        kept: NDArray[np.intp],
        counts: NDArray[np.bool_],
        feasible: Acquisition | None,
        factor: Acquisition | None,
        settings: Settings,
    ) -> None:
        is_pair = past.losses.shape[1] == 2
        # The warp of an objective stretches its best values, and so the volume at the ends of the
        # front: with three and more objectives, most proposals went to ends that are poor in all
        # others.
        # With a reference of the user, the volume is in the values that it is given in.
        is_warped = is_pair and not len(past.references)
        self._past = past
        self._settings = settings if is_warped else replace(settings, warp=False)
        self._feasible, self._factor = feasible, factor
        self._points, self._losses = past.points[kept], past.losses[kept]
        self._known = self._points[counts[kept]]
        self._running = past.pending
        self._models: tuple[Posterior, ...] = ()

    def best(self, rng: np.random.Generator) -> Array:
        """Return the point with the largest expected hypervolume improvement."""
        from spearmint.acquisition.factors import Sum
        from spearmint.acquisition.log_ehvi_many import random_directions
        from spearmint.acquisition.maximize import candidates, maximize
        from spearmint.acquisition.next_point import first_new
        from spearmint.gp.numerics import one_blas_thread

        space, settings = self._past.space, self._settings
        with one_blas_thread():
            models = self._fitted(rng)
            places = np.concatenate((self._known, self._likely()))
            means = np.stack([gp.predict(places)[0].mean(axis=(0, 2)) for gp in models], axis=1)
            best = _front(means)
            wide = len(models) == 2 and rng.random() < _WIDE_SHARE
            reference = means.max(axis=0) if wide else _reference(means, means[best])
            reference = self._given(reference, means[best])
            inside = means[best][(means[best] <= reference).all(axis=1)]
            few = tuple(gp.thinned(_ROUGH) for gp in models)
            directions = random_directions(len(models), rng)
            acquisition = _improvement(models, inside, reference, directions)
            rough = _improvement(few, inside, reference, directions)
            if self._factor is not None:
                acquisition, rough = Sum(acquisition, self._factor), Sum(rough, self._factor)
            near = places[rng.permutation(best)[:_NEAR]]
            n = len(models[0].points)
            n_global = 1 << int(np.clip(np.round(np.log2(150_000 / n)), 8, 11))
            ranked = maximize(
                acquisition,
                space,
                candidates(space, near, rng, n_global=n_global),
                rng,
                n_starts=settings.grid_subset,
                max_evaluations=60 if n < 300 else 25,
                rough=rough,
            )
        return first_new(space, ranked, np.concatenate((self._past.tried, self._running)), rng)

    def add(self, point: Array) -> None:
        """Take ``point`` as running."""
        self._running = np.concatenate((self._running, point[None]))
        self._models = tuple(_believed(model, point) for model in self._models)

    def _fitted(self, rng: np.random.Generator) -> tuple[Posterior, ...]:
        from spearmint.gp.fit import fit

        if not self._models:
            none, space, settings = self._points[:0], self._past.space, self._settings
            models = [fit(space, self._points, y, none, settings, rng) for y in self._losses.T]
            for point in self._running:
                models = [_believed(model, point) for model in models]
            self._models = tuple(models)
        return self._models

    def _given(self, reference: Array, best: Array) -> Array:
        """Return ``reference`` with the user's values, in the units of the models.

        While no point of the front reaches them, they are moved to the one that is closest to.
        """
        if not len(self._past.references):
            return reference
        largest = np.abs(self._losses).max(axis=0)
        scale = np.where(largest > 0.0, largest, 1.0)  # the square of a loss can overflow
        losses = self._losses / scale
        std = losses.std(axis=0)
        units = np.where(std > 0.0, std, 1.0)
        with np.errstate(over="ignore"):
            given = (np.array(self._past.references) / scale - losses.mean(axis=0)) / units
        given = np.clip(given, -_FAR, _FAR)
        wanted = np.where(np.isnan(given), reference, given)
        missing = float((best - wanted).max(axis=1).min())
        return wanted + missing + _CLOSE if missing >= 0.0 else wanted

    def _likely(self) -> Array:
        """Return the running points that are probably feasible."""
        if self._feasible is None or not len(self._running):
            return self._running
        return self._running[self._feasible(self._running) > _LIKELY]


def _improvement(
    models: tuple[Posterior, ...], front: Array, reference: Array, directions: Array
) -> Acquisition:
    """Return the log of the expected hypervolume improvement."""
    from spearmint.acquisition.log_ehvi import LogEHVI
    from spearmint.acquisition.log_ehvi_many import LogEHVIMany

    if len(models) == 2:
        return LogEHVI((models[0], models[1]), front, reference)
    return LogEHVIMany(models, front, reference, directions)


def _believed(model: Posterior, point: Array) -> Posterior:
    """Return ``model`` given its own prediction at ``point``."""
    return model.extended(point, np.zeros((len(model.mean), 1)))


def _reference(every: Array, best: Array) -> Array:
    """Return the reference point, beyond the ends of the front.

    The end of objective j is the point of the front that minimises the largest share of the extent
    of an objective, where shares of objectives other than j count 1 / ``_OTHERS`` times. A point
    that is poor in j, and no better than others elsewhere, is therefore not an end: Deb and Jain
    2014 (IEEE Trans. Evol. Comput. 18:577), section IV-C.
    """
    whole = np.ptp(every, axis=0)
    whole = np.where(whole > 0.0, whole, 1.0)
    extent = np.ptp(best, axis=0)
    shares = (best - best.min(axis=0)) / np.where(extent > 0.0, extent, 1.0)
    weights = np.where(np.eye(best.shape[1], dtype=bool), 1.0, 1.0 / _OTHERS)
    ends = [int(np.argmin((shares * row).max(axis=1))) for row in weights]
    worst = best[ends, np.arange(best.shape[1])]
    return np.asarray(worst + _BEYOND * whole)
