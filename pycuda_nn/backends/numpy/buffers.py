"""Memory of a numpy session: allocated once, reused by every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.layers.memory import Memory, aligned_zeros
from pycuda_nn.network import Network

Array = npt.NDArray[Any]

BLOCK = 32768  # floats: five buffers of Adam use 640 KiB and stay in a 1 MiB L2 cache


def blocks(network: Network, *buffers: Array) -> Iterator[tuple[Any, ...]]:
    """Yield (is_weight, workspace, piece of each buffer), in pieces of at most BLOCK floats.

    An optimizer makes several passes over each piece while it is in the cache.
    """
    tmp = aligned_zeros(min(BLOCK, network.n_params), buffers[0].dtype)
    for start, stop, is_weight in (
        (0, network.n_weights, True),
        (network.n_weights, network.n_params, False),
    ):
        for at in range(start, stop, BLOCK):
            end = min(at + BLOCK, stop)
            yield is_weight, tmp[: end - at], *(buffer[at:end] for buffer in buffers)


class Memories:
    """Memory of each layer and of the loss, for one number of rows."""

    def __init__(self, network: Network, dtype: npt.DTypeLike) -> None:
        fresh = [layer.fresh_output for layer in network.layers]
        self.layers = [
            Memory(dtype, in_place=in_place) for in_place in (False, *fresh[:-1])
        ]  # the first layer must not overwrite the caller's rows
        self.loss = Memory(dtype, in_place=fresh[-1])

    def outputs(self, z: Array) -> Array:
        """Return the last output in memory that the loss can overwrite."""
        own = self.loss.output_like(z)
        if own is not z:
            own[...] = z
        return own


class Buffers(Memories):
    """All memory that a step on ``rows`` rows writes."""

    def __init__(self, network: Network, rows: int, y: Array, dtype: npt.DTypeLike) -> None:
        super().__init__(network, dtype)
        self.x = aligned_zeros((rows, network.inputs), dtype)
        self.y = np.zeros((rows, *y.shape[1:]), dtype=y.dtype)
