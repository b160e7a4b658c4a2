"""A robust line through pairs of values of one trial, at an early and at a later step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_FEWEST, _MOST = 3, 100  # minimum and maximum number of pairs to fit a line to


def fitted_line(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return start and slope of later = start + slope * early; (0, 1) for fewer than 3 pairs.

    This is the Theil-Sen estimator (Theil 1950, Sen 1968): the slope is the median of the slopes
    between all pairs, limited to [0, 1], because curves converge as training continues. Of more
    than 100 pairs the last are used. Pairs that are not finite are ignored.
    """
    finite = [pair for pair in pairs if np.isfinite(pair).all()]
    if len(finite) < _FEWEST:
        return 0.0, 1.0
    x, y = np.array(finite[-_MOST:]).T
    first, second = np.triu_indices(len(x), 1)
    run, rise = x[second] - x[first], y[second] - y[first]
    apart = run != 0
    slope = float(np.clip(np.median(rise[apart] / run[apart]), 0, 1)) if apart.any() else 1.0
    return float(np.median(y - slope * x)), slope
