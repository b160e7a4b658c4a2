"""Outcome warping: Box-Cox of the shifted objective under a few powers, and how likely each is.

A loss often has tall walls and a flat valley, and a search fills the valley; a stationary GP fits
log y better than y there. y is shifted and scaled to u = (y - min) / (median - min) >= 0, then

    T(u) = ((1 + u)^lambda - 1) / lambda,  log(1 + u) at lambda = 0

Source: Box and Cox 1964 (JRSS B 26:211), eq. 2 with the shift 1. A power is judged by the
likelihood of u under it, the Jacobian included, with normal values (Box and Cox) or with those of
a GP (Snelson, Rasmussen and Ghahramani 2004, NIPS 16:337): T(u) is standardised, so the first is
``log_weight`` but for a constant, and the second ``log_weight`` plus the GP's log evidence.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.gp.numerics import Array

POWERS = (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5)
# Standard deviation of the powers' normal prior around 1, no warp.
_POWER_STD = 0.5
# Values this many times the lower half's spread above the minimum count as this many: what a trial
# returned for a failure, 1e30 perhaps, must not make all others look equal.
_LARGEST = 1e6
# Differences of the lower half that are no more than this share of its values are rounding errors.
_ROUNDING = 1e-14


def standardise(y: Array) -> Array:
    """Return ``y`` with mean 0 and standard deviation 1; zeros if all values are equal."""
    y = _in_range(y)
    centred = y - y.mean()
    # Again: the mean of large values that are nearly equal is rounded.
    centred -= centred.mean()
    std = float(np.sqrt(np.mean(centred * centred)))
    return centred / std if std > 0.0 else np.zeros_like(y)


@dataclass(frozen=True)
class Warped:
    """The objective under one power, standardised; log Jacobian plus log prior of the power."""

    values: Array
    log_weight: float


def warps(y: Array) -> list[Warped]:
    """Return ``y`` under each power, or only as it is where there is nothing to go by.

    That is with fewer than four values, or half of them equal to the lowest but for rounding.
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
    """Return ``y`` times a power of two, such that no square overflows, nor all of them vanish."""
    exponent = int(np.frexp(np.abs(y).max())[1])
    return np.asarray(np.ldexp(y, int(np.clip(exponent, -400, 400)) - exponent))
