"""Dropout: sets random elements to 0 in training, and scales the others up.

On a GPU ``dropout.cuh`` draws the same bits; the captured step drops elements in the kernel of the
activation before.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pycuda_nn.errors import ConfigError
from pycuda_nn.layers.base import Array, Bits, Layer, Parameters
from pycuda_nn.layers.memory import Memory
from pycuda_nn.rng import drop_threshold, keep_scale


@dataclass(frozen=True)
class Dropout(Layer):
    """Drops each element with ``probability``, in steps of 1/65536; does nothing in evaluation.

    Example:
        >>> import numpy as np
        >>> from pycuda_nn.layers import Dropout, Memory
        >>> Dropout(0.5).forward(np.ones((1, 2)), (), Memory(float), None)
        array([[1., 1.]])

    Source: Srivastava et al. 2014 (JMLR 15), section 10 (inverted: scaled in training).
    """

    probability: float
    draws: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.probability <= 0.99:
            raise ConfigError(f"{self}: the probability must be from 0 to 0.99")

    @functools.cached_property
    def threshold(self) -> int:
        """An element is dropped if its 16 bits are below this number."""
        return drop_threshold(self.probability)

    @functools.cached_property
    def scale(self) -> float:
        """Factor of the kept elements: 1 / P(kept)."""
        return keep_scale(self.probability)

    def forward(self, x: Array, params: Parameters, memory: Memory, bits: Bits | None) -> Array:
        """Return x times 0 or the scale; x itself in evaluation."""
        if bits is None:
            return x
        mask = memory.array("mask", x.shape, np.bool_)
        factor, out = memory.array("factor", x.shape), memory.array("dropped", x.shape)
        np.greater_equal(bits(x.size).reshape(x.shape), self.threshold, out=mask)
        np.multiply(mask, factor.dtype.type(self.scale), out=factor)
        return np.multiply(x, factor, out=out)

    def backward(
        self, delta: Array, params: Parameters, grads: Parameters, memory: Memory, *, needed: bool
    ) -> Array:
        """Return delta times the factors of the forward pass, in place."""
        return np.multiply(delta, memory.array("factor", delta.shape), out=delta)
