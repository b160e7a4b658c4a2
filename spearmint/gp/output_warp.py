"""Output warping: Box-Cox transformations of the shifted objective, and their likelihoods.

A loss often has a flat valley with steep walls, and a search has most points in the valley. A
stationary GP fits log y better than y there. y is shifted and scaled to
u = (y - min) / (median - min) >= 0, and transformed by

    T(u) = ((1 + u)^lambda - 1) / lambda,  log(1 + u) at lambda = 0

Source: Box and Cox 1964 (JRSS B 26:211), eq. 2 with the shift 1. The criterion for a power lambda
is the likelihood of u, including the Jacobian. T(u) is modelled either as independent normal values
(Box and Cox) or by a GP (Snelson, Rasmussen and Ghahramani 2004, NIPS 16:337). Because T(u) is
standardised, the first log likelihood is ``log_weight`` up to a constant, and the second is
``log_weight`` plus the GP's log evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.gp.numerics import Array

POWERS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5)
# Standard deviation of the normal prior of the power around 1, which means no warp.
_POWER_STD = 0.5
# u is limited to this value: a value such as 1e30, which a trial returned for a failure, must not
# make all other values look equal.
_LARGEST = 1e6
# Differences in the lower half up to this fraction of its values are rounding errors.
_ROUNDING = 1e-14


def standardise(y: Array) -> Array:
    """Return ``y`` with mean 0 and standard deviation 1; zeros if all values are equal."""
    y = _in_range(y)
    centred = y - y.mean()
    # A second time, because the mean of large, nearly equal values has a rounding error.
    centred -= centred.mean()
    std = float(np.sqrt(np.mean(centred * centred)))
    return centred / std if std > 0.0 else np.zeros_like(y)


@dataclass(frozen=True)
class Warped:
    """The objective transformed by one power, standardised.

    Attributes:
        values: The transformed and standardised values.
        log_weight: The log Jacobian plus the log prior of the power.
    """

    values: Array
    log_weight: float


def warps(y: Array) -> list[Warped]:
    """Return ``y`` transformed by each power; only untransformed if it has too little information.

    That is the case for fewer than four values, or if half of them equal the lowest value up to
    rounding errors.
    """
    y = _in_range(y)
    lift = y - y.min()
    spread = float(np.median(lift))
    if len(y) < 4 or spread <= _ROUNDING * max(abs(y.min()), abs(np.median(y))):
        return [Warped(standardise(y), 0.0)]
    log_u = np.log1p(np.minimum(lift, _LARGEST * spread) / spread)
    return [Warped(standardise(box_cox(log_u, p)), log_weight(log_u, p)) for p in POWERS]


def box_cox(log_u: Array, power: float) -> Array:
    """Return T(u) for ``log_u`` = log(1 + u)."""
    return np.asarray(np.expm1(power * log_u) / power) if power else log_u


def log_weight(log_u: Array, power: float) -> float:
    """Return the log Jacobian of u -> standardised T(u), plus the log prior of ``power``."""
    log_jacobian = (power - 1.0) * float(log_u.sum())
    log_std = float(np.log(box_cox(log_u, power).std()))
    return log_jacobian - len(log_u) * log_std - 0.5 * ((power - 1.0) / _POWER_STD) ** 2


def _in_range(y: Array) -> Array:
    """Return ``y`` times a power of two, so that no square overflows and not all underflow."""
    exponent = int(np.frexp(np.abs(y).max())[1])
    return np.asarray(np.ldexp(y, int(np.clip(exponent, -400, 400)) - exponent))
