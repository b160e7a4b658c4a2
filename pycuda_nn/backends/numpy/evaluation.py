"""Forward passes without training: outputs and metrics of any number of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy import ops
from pycuda_nn.backends.numpy.buffers import loss_of
from pycuda_nn.network import Network
from pycuda_nn.protocols import Metrics

Array = npt.NDArray[Any]
Weights = Sequence[tuple[Array, Array]]

_CHUNK_ROWS = 1024  # activations of a piece stay in the cache; the sum of losses is in float64


class Evaluator:
    """Outputs of a network, a piece of rows at a time."""

    def __init__(self, network: Network, dtype: npt.DTypeLike = np.float32) -> None:
        self._network = network
        self._dtype = dtype

    def outputs(self, weights: Weights, x: Array) -> Iterator[tuple[slice, Array]]:
        """Yield (rows, linear outputs) of every piece of ``x``; the outputs are new arrays."""
        activate = ops.BIAS_ACTIVATION[self._network.activation]
        for start in range(0, len(x), _CHUNK_ROWS):
            rows = slice(start, min(start + _CHUNK_ROWS, len(x)))
            a = np.ascontiguousarray(x[rows], dtype=self._dtype)
            for layer, (weight, bias) in enumerate(weights):
                a = np.matmul(a, weight)
                if layer < len(weights) - 1:
                    activate(a, bias)
            np.add(a, weights[-1][1], out=a)
            yield rows, a

    def metrics(self, weights: Weights, x: Array, y: Array) -> Metrics:
        """Return mean loss and error; infinities and NaN come through, without a warning."""
        loss = wrong = 0.0
        with np.errstate(all="ignore"):
            for rows, z in self.outputs(weights, x):
                wrong += self._wrong(z, y[rows])
                mean_loss = loss_of(self._network.loss, len(z), z.shape[1], z.dtype)
                loss += mean_loss(z, y[rows]) * len(z)
        if self._network.loss == "squared":
            return Metrics(loss=loss / len(x), error=math.sqrt(wrong / y.size))
        return Metrics(loss=loss / len(x), error=wrong / len(x))

    def _wrong(self, z: Array, y: Array) -> float:
        """Return the number of rows in a wrong class, or the sum of squared errors."""
        if self._network.loss == "squared":
            return float(np.square(z - y, dtype=np.float64).sum())
        guess = z[:, 0] > 0 if self._network.loss == "logistic" else z.argmax(axis=1)
        return float(np.count_nonzero(guess != y))
