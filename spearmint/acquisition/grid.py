"""Select the best of many points without refinement, like GPEIChooser of the original Spearmint."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from spearmint.acquisition.maximize import Acquisition, spread
from spearmint.feasible import within
from spearmint.gp.input_warp import InputWarp
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space

# Number of points per block: 20 MiB of kernel with 1000 observations and 10 samples.
_BLOCK = 256


def rank_grid(
    acquisition: Acquisition,
    space: Space,
    rng: np.random.Generator,
    *,
    n_points: int,
    input_warp: InputWarp | None = None,
) -> Array:
    """Return ``n_points`` valid Sobol points in descending order of ``acquisition``.

    Every second point is distributed evenly in warped coordinates.
    """
    # Sobol points are balanced only if their number is a power of two.
    cube = qmc.Sobol(len(space), rng=rng).random(1 << (n_points - 1).bit_length())[:n_points]
    points = within(space, spread(space, cube, input_warp), rng)
    blocks = [acquisition(points[i : i + _BLOCK]) for i in range(0, n_points, _BLOCK)]
    return np.asarray(points[np.argsort(-np.concatenate(blocks), kind="stable")])
