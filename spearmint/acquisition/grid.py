"""The best of many points, as the original Spearmint's GPEIChooser: no climbing."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from spearmint.acquisition.maximize import Acquisition, spread
from spearmint.gp.input_warp import InputWarp
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

# Points judged at once: with 1000 observations and 10 samples 20 MiB of kernel.
_BLOCK = 256


def rank_grid(
    acquisition: Acquisition,
    space: Space,
    rng: np.random.Generator,
    *,
    n_points: int,
    input_warp: InputWarp | None = None,
) -> Array:
    """Return ``n_points`` legal Sobol points by ``acquisition``, the largest first.

    Every other one is even in warped coordinates.
    """
    # Sobol points are balanced in powers of two only.
    cube = qmc.Sobol(len(space), rng=rng).random(1 << (n_points - 1).bit_length())[:n_points]
    points = spread(space, cube, input_warp)
    blocks = [acquisition(points[i : i + _BLOCK]) for i in range(0, n_points, _BLOCK)]
    return np.asarray(points[np.argsort(-np.concatenate(blocks), kind="stable")])
