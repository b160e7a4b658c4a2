"""Memory of a numpy session: made once, reused by every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy import ops
from pycuda_nn.network import Network

Array = npt.NDArray[Any]

_CACHE_LINE = 64  # bytes; also the width of the widest vector registers
BLOCK = 32768  # floats; the five buffers of Adam then take 640 KiB and stay in a 1 MiB L2 cache


def aligned_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> Array:
    """Return zeros that start on a cache line: vectorised code then never splits one."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + _CACHE_LINE, dtype=np.uint8)
    start = -raw.ctypes.data % _CACHE_LINE
    return raw[start : start + size].view(dtype).reshape(shape)


def blocks(network: Network, *buffers: Array) -> Iterator[tuple[Any, ...]]:
    """Yield (is_weight, work space, piece of each buffer): pieces of at most BLOCK floats.

    An optimizer passes several times over each piece while it is in the cache.
    """
    tmp = aligned_zeros(min(BLOCK, network.n_params), buffers[0].dtype)
    for start, stop, is_weight in (
        (0, network.n_weights, True),
        (network.n_weights, network.n_params, False),
    ):
        for at in range(start, stop, BLOCK):
            end = min(at + BLOCK, stop)
            yield is_weight, tmp[: end - at], *(buffer[at:end] for buffer in buffers)


class Buffers:
    """Everything a step on ``rows`` rows writes."""

    def __init__(
        self, network: Network, rows: int, y: Array, dtype: npt.DTypeLike, dropout: bool
    ) -> None:
        hidden, outputs = network.sizes[1:-1], network.sizes[-1]
        self.x = aligned_zeros((rows, network.sizes[0]), dtype)
        self.y = np.zeros((rows, *y.shape[1:]), dtype=y.dtype)
        self.ones = np.ones(rows, dtype=dtype)
        self.outputs = [aligned_zeros((rows, width), dtype) for width in network.sizes[1:]]
        self.deltas = [aligned_zeros((rows, width), dtype) for width in hidden]
        self.tmp = [aligned_zeros((rows, width), dtype) for width in hidden]
        self.masks = [np.zeros((rows, width), dtype=np.bool_) for width in hidden]
        kept = hidden if dropout else ()
        self.factors = [aligned_zeros((rows, width), dtype) for width in kept]
        self.dropped = [aligned_zeros((rows, width), dtype) for width in kept]
        self.loss = loss_of(network.loss, rows, outputs, dtype)


def loss_of(
    loss: str, rows: int, outputs: int, dtype: npt.DTypeLike
) -> Callable[[Array, Array], float]:
    """Return ``f(z, y)``: turn outputs into their gradient and return the mean loss."""
    if loss == "softmax":
        starts = np.arange(0, rows * outputs, outputs)
        place, row = np.zeros(rows, dtype=np.intp), np.zeros((rows, 1), dtype=dtype)
        return lambda z, y: ops.softmax_xent(z, y, starts, place, row)
    tmp = np.zeros((rows, outputs), dtype=dtype)
    kernel = ops.logistic_xent if loss == "logistic" else ops.squared_error
    return lambda z, y: kernel(z, y, tmp)
