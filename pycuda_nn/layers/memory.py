"""Arrays of a layer: allocated at its first call, reused by later calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_CACHE_LINE = 64  # bytes; also the width of the widest vector registers


def aligned_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return zeros aligned to a cache line: no vector access then crosses a line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


class Memory:
    """Arrays that a layer writes for minibatches of one number of rows.

    Attributes:
        dtype: Type of the arithmetic.
        kept: Values that ``forward`` stores for ``backward``, by name.
    """

    def __init__(self, dtype: npt.DTypeLike, *, in_place: bool = False) -> None:
        """Start empty.

        Args:
            dtype: Type of the arithmetic.
            in_place: Whether the layer can overwrite its input.
        """
        self.dtype = np.dtype(dtype)
        self.kept: dict[str, Array] = {}
        self._in_place = in_place
        self._arrays: dict[str, Array] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike | None = None) -> Array:
        """Return the array ``name``; it is zero at first, then keeps its last values."""
        held = self._arrays.get(name)
        if held is None:
            held = self._arrays[name] = aligned_zeros(shape, dtype or self.dtype)
        return held

    def once(self, name: str, make: Callable[[], Array]) -> Array:
        """Return the result of ``make`` at the first call for ``name``."""
        held = self._arrays.get(name)
        if held is None:
            held = self._arrays[name] = make()
        return held

    def output_like(self, x: Array) -> Array:
        """Return an array of the shape of the input ``x`` for a result; it can be ``x`` itself."""
        return x if self._in_place else self.array("output", x.shape)
