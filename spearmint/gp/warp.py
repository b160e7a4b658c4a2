"""Outcome warping: Box-Cox of the shifted objective, its power chosen by the GP's evidence.

A loss often has one tall wall and a flat valley; a stationary GP fits log y better than y there.
y is shifted and scaled to u = (y - min) / (median - min) >= 0 and becomes

    T(u) = ((1 + u)^lambda - 1) / lambda,  log(1 + u) at lambda = 0

Source: Box and Cox 1964 (JRSS B 26:211), eq. 2 with the shift 1; a monotone warp learned by the
evidence of a GP: Snelson, Rasmussen and Ghahramani 2004 (NIPS 16:337).
"""

from __future__ import annotations

import numpy as np

from spearmint.gp.arrays import Array

POWERS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5)
# Standard deviation of the powers' normal prior around 1, no warp.
_POWER_STD = 0.5
# Values this many times the lower half's spread above the minimum count as this many: the squares
# of a warped column must not overflow.
_LARGEST = 1e100


def standardise(y: Array) -> Array:
    """Return ``y`` with mean 0 and standard deviation 1; zeros if all values are (nearly) equal."""
    y = _in_range(y)
    centred = y - y.mean()
    # Again: the mean of large values that are nearly equal is rounded.
    centred -= centred.mean()
    std = float(np.sqrt(np.mean(centred * centred)))
    return centred / std if std > 0.0 else np.zeros_like(y)


def warped(y: Array) -> tuple[Array, Array]:
    """Return ``y`` under every power, standardised, and what each adds to the log evidence.

    Only the column of power 1 comes back where a warp has nothing to go by: fewer than four
    values, or half of them equal to the lowest.

    Returns:
        Columns, shape ``(n, m)``, and log Jacobian plus log prior of each, shape ``(m,)``.
    """
    y = _in_range(y)
    lift = y - y.min()
    spread = float(np.median(lift))
    if len(y) < 4 or spread <= 1e-9 * lift.max():
        return standardise(y)[:, None], np.zeros(1)
    log_u = np.log1p(np.minimum(lift / spread, _LARGEST))
    columns, added = [], []
    for power in POWERS:
        column = np.expm1(power * log_u) / power if power else log_u
        columns.append(standardise(column))
        log_jacobian = (power - 1.0) * log_u.sum() - len(y) * np.log(column.std())
        added.append(log_jacobian - 0.5 * ((power - 1.0) / _POWER_STD) ** 2)
    return np.stack(columns, axis=1), np.array(added)


def _in_range(y: Array) -> Array:
    """Return ``y`` divided by a power of two, such that no difference or square overflows."""
    largest = float(np.abs(y).max())
    return y / 2.0 ** np.ceil(np.log2(largest) - 400.0) if largest > 2.0**400 else y
