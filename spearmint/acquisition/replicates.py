"""Repeat a point that was tried, where its next noisy value helps more than that of a new point.

A search under noise ends with a choice: the tried point with the lowest posterior mean. The
knowledge gradient of a point is how much lower this minimum is expected to be after one more value
there. With the posterior means m of the candidates, and b_i = cov(f_i, f_j) / sd(y_j) for a value
y_j of candidate j, it is

    KG_j = min_i m_i - E[min_i (m_i + b_i Z)],  Z standard normal

which is computed exactly from the lower envelope of the lines m_i + b_i z.

Source: Frazier, Powell and Dayanik 2009 (INFORMS Journal on Computing 21:599), algorithms 1 and 2.
Here, b is from each sample of the hyperparameters, and KG is the mean over them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spearmint.acquisition.log_ei import log_h
from spearmint.acquisition.maximize import SAME
from spearmint.gp.numerics import Array
from spearmint.gp.posterior import Posterior
from spearmint.gp.space import distance

# Below this noise, in standard deviations of the (warped) values, no trial is repeated: that of
# ``spearmint.choosers.recommendation``.
_LEAST_NOISE = 0.02
# Number of tried points with the lowest means that can be repeated.
_CANDIDATES = 10
# Lines whose slopes differ by less are parallel.
_PARALLEL = 1e-12


@dataclass(frozen=True)
class Replicates:
    """The points that can be repeated.

    Attributes:
        tried: Their coordinates, each once, shape ``(m, D)``, m >= 1.
        mark: Called when a point is repeated.
    """

    tried: Array
    mark: Callable[[], None]

    def instead_of(self, point: Array, posterior: Posterior) -> Array:
        """Return the tried point whose next value helps more than that of ``point``, or ``point``.

        If ``point`` was tried, too, because no other is left, the best tried one is returned.
        """
        if posterior.noise_sd < _LEAST_NOISE:
            return point
        means = posterior.predict(self.tried)[0].mean(axis=(0, 2))
        known = self.tried[np.argsort(means, kind="stable")[:_CANDIDATES]]
        is_new = distance(point[None], self.tried).min() > SAME
        gains = knowledge_gradients(posterior, known, point[None] if is_new else point[None][:0])
        chosen = int(np.argmax(gains))
        if chosen == len(known):
            return point
        self.mark()
        return np.asarray(known[chosen])


def knowledge_gradients(posterior: Posterior, known: Array, new: Array) -> Array:
    """Return how much one more value at each point lowers the lowest mean, by expectation.

    Args:
        posterior: The model, in whose units the gains are.
        known: Tried points, among which the best is chosen in any case, shape ``(k, D)``.
        new: Points that can be chosen only after a trial there, shape ``(m, D)``.

    Returns:
        The gains of ``known``, then those of ``new``, shape ``(k + m,)``.
    """
    points, k = np.concatenate((known, new)), len(known)
    mean = posterior.predict(points)[0].mean(axis=(0, 2))
    covariance = posterior.covariance(points)
    noise = (posterior.noise * posterior.scale)[:, None]
    sd = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2) + noise)
    slopes = covariance / sd[:, None, :]
    gains = np.zeros(len(points))
    for j in range(len(points)):
        rows = np.arange(k) if j < k else np.append(np.arange(k), j)
        drop = mean[:k].min() - mean[rows].min()
        gains[j] = drop + np.mean([_gain(mean[rows], each) for each in slopes[:, rows, j]])
    return gains


def _gain(heights: Array, slopes: Array) -> float:
    """Return min_i h_i - E[min_i (h_i + s_i Z)] for a standard normal Z."""
    heights, slopes = _lowest_of_parallel(heights, slopes)
    lines, starts = [0], [-np.inf]
    for i in range(1, len(heights)):
        while True:
            j = lines[-1]
            start = (heights[i] - heights[j]) / (slopes[j] - slopes[i])
            if start > starts[-1]:
                break
            lines.pop()
            starts.pop()
        lines.append(i)
        starts.append(start)
    if len(lines) == 1:
        return 0.0
    log_gain, _, _ = log_h(-np.abs(np.array(starts[1:])))
    return float(-np.diff(slopes[lines]) @ np.exp(log_gain))


def _lowest_of_parallel(heights: Array, slopes: Array) -> tuple[Array, Array]:
    """Return the lowest of the lines of each slope, by descending slope."""
    order = np.argsort(-slopes)
    heights, slopes = heights[order], slopes[order]
    group = np.cumsum(np.append(0, -np.diff(slopes) > _PARALLEL))
    order = np.lexsort((heights, group))
    lowest = order[np.unique(group[order], return_index=True)[1]]
    return heights[lowest], slopes[lowest]
