"""Layout of the parameters of many networks: those of a layer follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.layout import PaddedDense, ParameterLayout
from pycuda_nn.network import Network

Array = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A matrix of parameters of one network; a bias has one row.

    Attributes:
        place: Its first element on the device.
        rows, columns: Its shape, without padding.
        pitch: Distance of two rows on the device.
        of_state: Its first element in the parameters of a state.
    """

    place: int
    rows: int
    columns: int
    pitch: int
    of_state: int


class ManyLayout(ParameterLayout):
    """The layout of one network, with every weight and bias repeated ``count`` times in place.

    ``spread`` and ``compact`` convert arrays (count, n) of states.
    """

    def __init__(self, network: Network, count: int) -> None:
        super().__init__(network)
        self._one = ParameterLayout(network)
        self._count = count
        self.n_weights *= count
        self.n_params *= count
        self.layers = [
            replace(layer, weights=count * layer.weights, bias=count * layer.bias)
            for layer in self.layers
        ]

    def spread(self, flat: Array) -> npt.NDArray[np.float32]:
        """See :class:`ParameterLayout`."""
        out = np.empty(self.n_params, dtype=np.float32)
        wide = np.stack([self._one.spread(values) for values in flat])
        for start, size in self._pieces():
            place = slice(self._count * start, self._count * (start + size))
            out[place] = wide[:, start : start + size].ravel()
        return out

    def compact(self, wide: Array) -> npt.NDArray[np.float32]:
        """See :class:`ParameterLayout`."""
        each = np.empty((self._count, self._one.n_params), dtype=np.float32)
        for start, size in self._pieces():
            place = slice(self._count * start, self._count * (start + size))
            each[:, start : start + size] = wide[place].reshape(self._count, size)
        return np.stack([self._one.compact(values) for values in each])

    def pieces(self, number: int) -> Iterator[Piece]:
        """Yield the weights of all layers of network ``number``, then the biases."""
        at, dense = 0, list(zip(self.layers, self._dense, strict=True))
        for layer, of in dense:
            place = layer.weights + number * layer.inputs * layer.outputs
            yield Piece(
                place=place, rows=of.fan_in, columns=of.fan_out, pitch=layer.outputs, of_state=at
            )
            at += of.fan_in * of.fan_out
        for layer, of in dense:
            place = layer.bias + number * layer.outputs
            yield Piece(place=place, rows=1, columns=of.fan_out, pitch=layer.outputs, of_state=at)
            at += of.fan_out

    def _pieces(self) -> list[tuple[int, int]]:
        """Return start and size of each weight and bias in the layout of one network."""
        layers: list[PaddedDense] = self._one.layers
        weights = [(layer.weights, layer.inputs * layer.outputs) for layer in layers]
        return weights + [(layer.bias, layer.outputs) for layer in layers]
