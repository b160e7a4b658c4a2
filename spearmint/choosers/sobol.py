"""Scrambled Sobol points by index, for any number of points and dimensions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spearmint.gp.numerics import Array

# Dimensions are generated in two blocks, so that the scramble does not depend on their number.
_BLOCKS = ((0, 64), (64, 1024))
# The time to skip to a point is proportional to its index, so a new scramble starts here.
_PERIOD = 1 << 16
_CHUNK = 64  # number of points generated together; divides the period


def sobol_point(seed: int, index: int, n_dimensions: int) -> Array:
    """Return point ``index`` of the sequence scrambled with ``seed``, shape ``(n_dimensions,)``.

    The first coordinates do not depend on ``n_dimensions``. Coordinates from 1024 on are random.

    Source: Joe and Kuo 2008 (SIAM J. Sci. Comput. 30:2635), scrambled according to Matousek 1998
    (J. Complexity 14:527), both as implemented in ``scipy.stats.qmc.Sobol``.
    """
    start, at = index - index % _CHUNK, index % _CHUNK
    parts = [_block(seed, start, *b)[at] for b in _BLOCKS if b[0] < n_dimensions]
    rest = max(0, n_dimensions - _BLOCKS[-1][1])
    parts.append(np.random.default_rng([seed, _BLOCKS[-1][1], index]).random(rest))
    return np.concatenate(parts)[:n_dimensions]


@lru_cache(maxsize=16)
def _block(seed: int, start: int, first: int, end: int) -> Array:
    """Return coordinates ``first`` to ``end - 1`` of the chunk of points that starts at ``start``.

    Each row is a point.
    """
    from scipy.stats import qmc

    scramble, at = divmod(start, _PERIOD)
    sequence = qmc.Sobol(end, rng=np.random.default_rng([seed, first, scramble]))
    if at:
        sequence.fast_forward(at)
    return np.asarray(sequence.random(_CHUNK)[:, first:])
