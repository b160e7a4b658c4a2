"""Scale features and targets by statistics of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.data.arrays import NARROW

Array = npt.NDArray[Any]
_CHUNK = 1 << 15  # numbers of a piece, whose float64 copy stays in the cache


@dataclass(frozen=True, kw_only=True, eq=False)
class Scaler:
    """Computes ``(x - shift) * factor`` per column; both are float32 of shape (d,)."""

    shift: Array
    factor: Array

    @classmethod
    def fit(cls, x: Array, kind: str) -> Scaler | None:
        """Return the scaler of ``kind`` (``none``, ``standard``, ``unit``) for these rows.

        A constant column is shifted to 0; its factor is 1.
        """
        if kind == "none":
            return None
        if kind == "unit":
            low, high = x.min(axis=0), x.max(axis=0)
            return cls(shift=low, factor=_inverse(high.astype(np.float64) - low))
        mean = _chunked_mean(x, np.zeros(x.shape[1]), power=1)
        deviation = np.sqrt(_chunked_mean(x, mean, power=2))
        # By rounding, the deviation of a constant column is tiny, not 0; its factor would be huge.
        deviation[x.min(axis=0) == x.max(axis=0)] = 0.0
        return cls(shift=mean.astype(np.float32), factor=_inverse(deviation))

    def apply(self, x: Array) -> Array:
        """Return the scaled rows in a new float32 array."""
        out: Array = np.subtract(x, self.shift, dtype=np.float32)
        out *= self.factor
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class TargetScaler:
    """Computes ``(y - shift) / deviation``; ``shift`` has shape (k,), ``deviation`` is one number.

    One deviation for all targets: the mean squared error stays that of the targets, times a
    constant.
    """

    shift: npt.NDArray[np.float64]
    deviation: float

    @classmethod
    def fit(cls, y: Array) -> TargetScaler:
        """Return the scaler of targets (n, k); the deviation of constant targets counts as 1."""
        shift = y.mean(axis=0, dtype=np.float64)
        deviation = float(np.sqrt(np.square(y - shift).mean()))
        return cls(shift=shift, deviation=deviation or 1.0)

    def apply(self, y: Array) -> Array:
        """Return the scaled targets, float32."""
        scaled_y: Array = ((y - self.shift) / self.deviation).astype(np.float32)
        return scaled_y

    def invert(self, outputs: Array) -> Array:
        """Return outputs of the network in the unit of the targets, float32.

        They are float64 if the targets differ by less than float32 resolves.
        """
        narrow = bool(np.any(self.deviation < NARROW * np.abs(self.shift)))
        values: Array = outputs * self.deviation + self.shift
        return values if narrow else values.astype(np.float32)

    def in_unit(self, loss: float, error: float) -> tuple[float, float]:
        """Return squared loss and root mean squared error in the unit of the targets."""
        return loss * self.deviation**2, error * self.deviation


def scaled(x: Array, scaler: Scaler | None) -> Array:
    """Return ``x`` scaled, or ``x`` itself if ``scaler`` is None."""
    return x if scaler is None else scaler.apply(x)


def _inverse(width: Array) -> Array:
    safe = np.where(width > 0, width, 1.0)
    factor: Array = (1.0 / safe).astype(np.float32)
    return factor


def _chunked_mean(x: Array, center: Array, *, power: int) -> Array:
    total = np.zeros(x.shape[1], dtype=np.float64)
    rows = max(1, _CHUNK // max(1, x.shape[1]))
    copy = np.empty((rows, x.shape[1]))
    for start in range(0, len(x), rows):
        piece = x[start : start + rows]
        chunk = np.subtract(piece, center, out=copy[: len(piece)])
        total += (np.multiply(chunk, chunk, out=chunk) if power == 2 else chunk).sum(axis=0)
    return total / len(x)
