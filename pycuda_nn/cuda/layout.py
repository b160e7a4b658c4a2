"""Layout of the parameters on the device: widths are padded so that every row is aligned.

Padding is zero and stays zero: padded inputs and outputs are zero, and so are their gradients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import Dense
from pycuda_nn.network import Network

Array = npt.NDArray[Any]

_INT = 1 << 31  # the kernels count weights of a layer and packs of a minibatch in 32 bits
_MOST_ROWS = 1 << 30  # the kernels round the rows of an epoch up to a power of two to sort them
ALIGN = 16  # elements, 32 bytes of a 16-bit type; cuBLASLt needs 16 bytes, tensor cores tiles of 16


def padded(width: int) -> int:
    """Return ``width`` rounded up to a multiple of the tile width."""
    return -(-width // ALIGN) * ALIGN


@dataclass(frozen=True, kw_only=True)
class PaddedDense:
    """A layer on the device; offsets count elements of the flat buffer.

    Attributes:
        inputs, outputs: Padded widths; the weights are (inputs, outputs), row-major.
        width: Outputs without padding.
    """

    inputs: int
    outputs: int
    width: int
    weights: int
    bias: int


def check_reach(layout: ParameterLayout, *, rows: int, batch: int, pack: int) -> None:
    """Raise ConfigError if a training exceeds the range of the kernels' indices.

    Args:
        layout: Layout of the network.
        rows: Rows of the largest part.
        batch: Rows of a minibatch.
        pack: Elements of an access of 16 bytes.
    """
    problems = [
        f"a layer of {layer.inputs:,} x {layer.outputs:,} has 2**31 weights or more"
        for layer in layout.layers
        if layer.inputs * layer.outputs >= _INT
    ]
    if batch * max(layout.sizes) // pack >= _INT:
        problems.append(f"a minibatch of {batch:,} rows is too large for a layer of this width")
    if rows > _MOST_ROWS:
        problems.append(f"{rows:,} rows are too many: at most 2**30")
    if problems:
        raise ConfigError(
            "the CUDA backend cannot train this network or data:",
            "Use a smaller network or less data, or --backend numpy.",
            problems=problems,
        )


class ParameterLayout:
    """The weights of all dense layers, then the biases of all dense layers, padded."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._dense = [layer for layer in network.layers if isinstance(layer, Dense)]
        widths = [network.inputs, *(layer.fan_out for layer in self._dense)]
        self.sizes = tuple(padded(width) for width in widths)
        pairs = list(zip(self.sizes[:-1], self.sizes[1:], strict=True))
        self.n_weights = sum(i * o for i, o in pairs)
        self.n_params = self.n_weights + sum(self.sizes[1:])
        self.layers: list[PaddedDense] = []
        weights, bias = 0, self.n_weights
        for (inputs, outputs), width in zip(pairs, widths[1:], strict=True):
            self.layers.append(
                PaddedDense(inputs=inputs, outputs=outputs, width=width, weights=weights, bias=bias)
            )
            weights, bias = weights + inputs * outputs, bias + outputs

    def spread(self, flat: Array) -> npt.NDArray[np.float32]:
        """Convert the parameters of a state to this layout."""
        out = np.zeros(self.n_params, dtype=np.float32)
        for (to_w, to_b), (w, b) in zip(self._views(out), self.network.views(flat), strict=True):
            to_w[...], to_b[...] = w, b
        return out

    def compact(self, wide: Array) -> npt.NDArray[np.float32]:
        """Convert parameters in this layout to the layout of a state."""
        out = np.empty(self.network.n_params, dtype=np.float32)
        for (w, b), (of_w, of_b) in zip(self.network.views(out), self._views(wide), strict=True):
            w[...], b[...] = of_w, of_b
        return out

    def _views(self, wide: Array) -> list[tuple[Array, Array]]:
        """Return the weights and bias of each layer without padding."""
        views = []
        for layer, dense in zip(self.layers, self._dense, strict=True):
            size = layer.inputs * layer.outputs
            weight = wide[layer.weights : layer.weights + size].reshape(layer.inputs, layer.outputs)
            bias = wide[layer.bias : layer.bias + dense.fan_out]
            views.append((weight[: dense.fan_in, : dense.fan_out], bias))
        return views
