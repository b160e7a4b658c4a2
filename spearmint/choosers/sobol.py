"""Scrambled Sobol points by index, whatever their number and the number of dimensions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from spearmint.gp.arrays import Array

# Dimensions are made in blocks: a block's scramble must not depend on how many are asked for.
_BLOCK = 64
# scipy's direction numbers end here; later dimensions are random, no longer of low discrepancy.
_MAX_DIMENSION = 21201
# A sequence of 30 bits repeats from here on.
_PERIOD = 1 << 30


def sobol_point(seed: int, index: int, n_dimensions: int) -> Array:
    """Return point ``index`` of the sequence that ``seed`` scrambles, shape ``(n_dimensions,)``.

    Its first coordinates are the same for every ``n_dimensions``.

    Source: Joe and Kuo 2008 (SIAM J. Sci. Comput. 30:2635), scrambled by Matousek 1998
    (J. Complexity 14:527), both as in ``scipy.stats.qmc.Sobol``.
    """
    blocks = range(0, n_dimensions, _BLOCK)
    return np.concatenate([_block(seed, index % _PERIOD, b) for b in blocks])[:n_dimensions]


@lru_cache(maxsize=256)
def _block(seed: int, index: int, first: int) -> Array:
    """Return coordinates ``first`` to ``first + 63`` of point ``index``."""
    from scipy.stats import qmc

    if first + _BLOCK > _MAX_DIMENSION:
        return np.random.default_rng([seed, first, index]).random(_BLOCK)
    sequence = qmc.Sobol(first + _BLOCK, rng=np.random.default_rng([seed, first]))
    if index:
        sequence.fast_forward(index)
    return np.asarray(sequence.random(1)[0, first:])
