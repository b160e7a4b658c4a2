"""Forward passes: outputs and metrics of any number of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy.buffers import Memories
from pycuda_nn.network import Network
from pycuda_nn.protocols import Metrics

Array = npt.NDArray[Any]
Weights = Sequence[Sequence[Array]]

_CHUNK_ROWS = 1024  # activations of a piece stay in the cache; losses are summed in float64


class Evaluator:
    """Computes the outputs of a network piece by piece; it reuses memory and is not thread-safe."""

    def __init__(self, network: Network, dtype: npt.DTypeLike = np.float32) -> None:
        self._network = network
        self._dtype = dtype
        self._memories: dict[int, Memories] = {}

    def outputs(self, weights: Weights, x: Array) -> Iterator[tuple[slice, Array]]:
        """Yield (rows, outputs) of each piece of ``x``; the next piece overwrites the outputs.

        Args:
            weights: ``network.views_by_layer`` of the parameters.
            x: Rows, (n, d).
        """
        for rows, z, _ in self._pieces(weights, x):
            yield rows, z

    def metrics(self, weights: Weights, x: Array, y: Array) -> Metrics:
        """Return the mean loss and error; they can be infinite or NaN, without a warning."""
        criterion = self._network.loss
        loss = wrong = 0.0
        with np.errstate(all="ignore"):
            for rows, z, memories in self._pieces(weights, x):
                wrong += criterion.wrong(z, y[rows])
                mean_loss = criterion.gradient(memories.outputs(z), y[rows], memories.loss)
                loss += mean_loss * len(z)
        error = criterion.error(wrong, len(x), self._network.outputs)
        return Metrics(loss=loss / len(x), error=error)

    def _pieces(self, weights: Weights, x: Array) -> Iterator[tuple[slice, Array, Memories]]:
        for start in range(0, len(x), _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, len(x)))
            a = np.ascontiguousarray(x[rows], dtype=self._dtype)
            held = self._memories.get(len(a))
            if held is None:
                held = self._memories[len(a)] = Memories(self._network, self._dtype)
            for layer, params, memory in zip(
                self._network.layers, weights, held.layers, strict=True
            ):
                a = layer.forward(a, params, memory, None)
            yield rows, a, held
