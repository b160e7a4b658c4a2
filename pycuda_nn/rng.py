"""Random numbers that depend on a seed and a place, not on earlier draws.

Every number is a word of Philox4x64-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
1, 2, 3", section 3.3) with

    key     = (seed, purpose)
    counter = (block, a, b, 0),  block = 1, 2, 3, ...

where word ``w`` of a stream is output ``w % 4`` of block ``1 + w // 4`` (numpy increments the
counter before it draws, so the first block is 1). A resumed training therefore needs no generator
state, and a kernel draws the same numbers from (seed, step, layer, element) alone. Only raw words
of the bit generator are used: numpy guarantees that their stream never changes, but does not
guarantee this for ``Generator.permutation`` and ``Generator.normal``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

_DROP_LEVELS = 65536  # a dropout decision uses 16 bits: four decisions per word


class Purpose(IntEnum):
    """Second word of the key: different purposes have different streams."""

    WEIGHTS = 1
    ORDER = 2
    DROPOUT = 3
    SPLIT = 4


class Stream:
    """The words of one (seed, purpose); ``words`` accepts places in any order."""

    def __init__(self, seed: int, purpose: Purpose) -> None:
        self._bits = np.random.Philox(key=np.array([seed, purpose], dtype=np.uint64))
        self._state: Any = self._bits.state

    def words(self, n: int, a: int = 0, b: int = 0) -> npt.NDArray[np.uint64]:
        """Return the first ``n`` words of place ``(a, b)``."""
        self._state["state"]["counter"][:] = (0, a, b, 0)
        self._state["buffer_pos"] = 4  # empty buffer: the next draw starts block 1
        self._bits.state = self._state
        words: npt.NDArray[np.uint64] = self._bits.random_raw(n)
        return words


def shuffled(n: int, seed: int, purpose: Purpose, a: int = 0) -> npt.NDArray[np.intp]:
    """Return the indices 0 .. n-1, sorted by ``n`` random words (ties by index)."""
    order: npt.NDArray[np.intp] = np.argsort(Stream(seed, purpose).words(n, a), kind="stable")
    return order


def epoch_order(n: int, seed: int, epoch: int) -> npt.NDArray[np.intp]:
    """Return the order in which every backend visits ``n`` rows in ``epoch`` (from 0)."""
    return shuffled(n, seed, Purpose.ORDER, epoch)


@dataclass(frozen=True, kw_only=True)
class EpochOrder:
    """The order of ``n`` rows in ``epoch``, not drawn yet: a device can draw it itself."""

    n: int
    seed: int
    epoch: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[np.intp]:
        """Draw the order on the CPU."""
        return epoch_order(self.n, self.seed, self.epoch)


def uniform(n: int, seed: int, a: int) -> npt.NDArray[np.float32]:
    """Return ``n`` numbers in [-1, 1), multiples of 2**-23, for the weights of layer ``a``."""
    top = (Stream(seed, Purpose.WEIGHTS).words(n, a) >> np.uint64(40)).astype(np.float32)
    out: npt.NDArray[np.float32] = top * np.float32(2.0**-23) - np.float32(1.0)
    return out


def drop_threshold(dropout: float) -> int:
    """Return the threshold: an element is dropped if its 16 bits are below it."""
    return round(dropout * _DROP_LEVELS)


def keep_scale(dropout: float) -> float:
    """Return 1 / P(kept) of the rounded probability, so that the expectation is exact."""
    return _DROP_LEVELS / (_DROP_LEVELS - drop_threshold(dropout))


def drop_bits(stream: Stream, step: int, layer: int, n: int) -> npt.NDArray[np.uint16]:
    """Return 16 random bits for each of ``n`` elements (row-major) of ``layer`` at ``step``.

    Element ``e`` uses the 16 bits from bit 16 * (e % 4) of word ``e // 4`` of place (step, layer).
    """
    words = stream.words((n + 3) // 4, step, layer).astype("<u8", copy=False)
    return words.view(np.uint16)[:n]
