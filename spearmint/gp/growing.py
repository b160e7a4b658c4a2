"""A posterior to which pending trials are added one by one, without a new factorisation.

Arrays have room for later points. Until they are used, their rows are 0 in the factor and in
``alpha``, so they change no prediction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import blas, lapack

from spearmint.gp.posterior import VARIANCE_FLOOR, Posterior
from spearmint.gp.triangles import LARGE, times_lower, times_lower_transposed

if TYPE_CHECKING:
    from spearmint.gp.numerics import Array

# Points for which memory is allocated at once: a copy of a large factor takes longer than its row.
_ROOM, _ROOM_OF_LARGE = 16, 50
# Largest number on the diagonal of an inverse that is used: 1 - k' (C + g I)^-1 k is then exact to
# about 2e-10. With 2e7 (noise 6e-8, N = 850) the error was 3e-7, more than the variance of most
# points that were evaluated. The factor is exact to 1e-13 there.
_LARGEST = 1e4


class Growing:
    """A posterior, and its number of points so far.

    Attributes:
        posterior: The posterior now. Its arrays change in place.
        size: Number of its points, N; later rows of its arrays are free.
    """

    def __init__(self, posterior: Posterior) -> None:
        self.size = len(posterior.points)
        self.posterior = _with_room(posterior)

    def add(self, point: Array, normals: Array) -> tuple[Array, Array]:
        """Add a pending trial at ``point`` (D,); return l, ``(S, N)``, and d, ``(S,)``.

        With l = L^-1 k, the new rows of L and L^-1 are (l', d) and r = (-l' L^-1 / d, 1 / d), where
        d^2 = 1 + g - l' l. The inverse of the covariance grows by r r'. This takes O(S N^2).

        Args:
            point: The pending point.
            normals: Standard normal draws of its outcome, shape ``(S, F)``. A posterior without
                pending trials has one fantasy, which then becomes F.
        """
        n = self.size
        if n == len(self.posterior.points):
            self.posterior = _with_room(self.posterior)
        gp = self.posterior
        k = gp.correlation(point[None])
        half = times_lower_transposed(k, gp.inverse_factor)[:, 0]
        left = np.maximum(1.0 - np.sum(half * half, axis=1), VARIANCE_FLOOR)
        rest = np.sqrt(np.maximum(left + gp.noise, VARIANCE_FLOOR))
        row = times_lower(half[:, None], gp.inverse_factor)[:, 0] / -rest[:, None]
        row[:, n] = 1.0 / rest
        drawn = np.sqrt(gp.scale)[:, None] * normals
        alpha = gp.alpha + row[:, :, None] * drawn[:, None, :]
        gp.points[n] = gp.warped(point[None])[0]
        gp.inverse_factor[:, n, : n + 1] = row[:, : n + 1]
        if gp.inverse is not None and (row * row).max() > _LARGEST:
            gp = replace(gp, inverse=None)
        if gp.inverse is not None:
            for inverse, new in zip(gp.inverse, row, strict=True):
                blas.dsyr(1.0, new, lower=0, a=inverse.T, overwrite_a=1)
        k[:, 0, n] = 1.0
        mean = gp.mean[:, None] + (k @ alpha)[:, 0]
        if gp.trend is not None:
            mean += gp.trend(point[None])
        self.posterior = replace(gp, alpha=alpha, best=np.minimum(gp.best, mean))
        self.size = n + 1
        return half[:, :n], rest


def _with_room(posterior: Posterior) -> Posterior:
    """Return a copy of ``posterior`` with room for more points, and the inverse of a large one."""
    n = len(posterior.points)
    more = _ROOM_OF_LARGE if n >= LARGE else _ROOM
    inverse = posterior.inverse
    if inverse is None and n >= LARGE:
        inverse = _inverse(posterior.inverse_factor)
    return replace(
        posterior,
        points=np.pad(posterior.points, ((0, more), (0, 0))),
        inverse_factor=np.pad(posterior.inverse_factor, ((0, 0), (0, more), (0, more))),
        alpha=np.pad(posterior.alpha, ((0, 0), (0, more), (0, 0))),
        inverse=None if inverse is None else np.pad(inverse, ((0, 0), (0, more), (0, more))),
    )


def _inverse(factors: Array) -> Array | None:
    """Return the lower triangles of the inverses, (S, N, N); None if they are not exact enough."""
    if np.einsum("sij,sij->sj", factors, factors).max() > _LARGEST:
        return None
    # A row in memory is a column for LAPACK: it has U = L^-T, and U U' is the inverse.
    return np.stack([lapack.dlauum(each.T, lower=0)[0].T for each in factors])
