"""A portfolio: a few points such that each of several related problems has a good one among them.

The points are chosen greedily, as in Wistuba, Schilling and Schmidt-Thieme 2015 (DSAA, "Learning
hyperparameter optimization initializations", section III). The next point is the one that reduces
the most the sum over problems of the best value among the chosen points,

    x = argmin over candidates c of sum over problems r of min(l_r, f_r(c))

where l_r is the least f_r of the points chosen before. f_r is a GP's prediction of the normal
scores of the values of problem r, which are comparable between problems of any scale: Salinas, Shen
and Perrone 2020 (ICML, "A quantile-based approach for hyperparameter transfer learning", eq. 2).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from spearmint.acquisition.maximize import SAME
from spearmint.gp.numerics import Array
from spearmint.gp.predict import predict
from spearmint.gp.space import Space, distance

# Number of candidates: the best points of each problem.
_CANDIDATES = 3
# Minimum number of observations to model a problem.
LEAST_OBSERVATIONS = 5


def portfolio(space: Space, problems: Sequence[tuple[Array, Array]], size: int) -> Array:
    """Return at most ``size`` observed points, in the order in which they were chosen.

    Args:
        space: The D dimensions, the same for all problems.
        problems: Observed points ``(n, D)`` and finite values ``(n,)``, to be minimised. Problems
            with fewer than five observations are ignored.
        size: Number of points, at least 1.
    """
    known = [(points, y) for points, y in problems if len(y) >= LEAST_OBSERVATIONS]
    if not known:
        return np.empty((0, len(space)))
    candidates = np.concatenate([points[np.argsort(y)[:_CANDIDATES]] for points, y in known])
    values = np.stack([predict(space, x, _normal_scores(y), candidates)[0] for x, y in known])
    least = np.full(len(known), np.inf)
    chosen: list[int] = []
    while len(chosen) < size:
        sums = np.minimum(least[:, None], values).sum(axis=0)
        if chosen:
            sums[distance(candidates, candidates[chosen]).min(axis=1) <= SAME] = np.inf
        best = int(np.argmin(sums))
        if not np.isfinite(sums[best]):
            break
        chosen.append(best)
        least = np.minimum(least, values[:, best])
    return candidates[chosen]


def _normal_scores(y: Array) -> Array:
    """Return the standard normal quantiles of the ranks of ``y``."""
    return np.asarray(ndtri((rankdata(y) - 0.5) / len(y)))
