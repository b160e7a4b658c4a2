"""The rules of :class:`Layer` as tests; subclass :class:`LayerContract` for a new layer.

::

    class TestMine(LayerContract):
        def layer(self) -> Layer:
            return MyLayer(0.1)
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.layers.base import Layer, Parameters, from_description
from pycuda_nn.layers.memory import Memory
from pycuda_nn.rng import Purpose, Stream, drop_bits, uniform

Array = npt.NDArray[Any]

_STEP = 1e-6  # step of a central difference in float64


class LayerContract(ABC):
    """Tests of one layer, in float64.

    Attributes:
        rows, width: Shape of the input; ``width`` is used if the layer accepts any width.
        rtol: Tolerance of backward against the slope of forward, relative to the largest element.
    """

    rows = 6
    width = 5
    rtol = 1e-6

    @abstractmethod
    def layer(self) -> Layer:
        """Return the layer under test."""

    def inputs(self) -> Array:
        """Return rows in float64; override it if rows must avoid a kink of the layer."""
        width = self.layer().input_width or self.width
        return np.random.default_rng(0).normal(size=(self.rows, width))

    def test_shape_rule_is_what_forward_gives(self) -> None:
        """``output_width`` is correct in training and in evaluation."""
        layer, x = self.layer(), self.inputs()
        for training in (True, False):
            out = self._forward(x, self._parameters(), training=training)
            np.testing.assert_equal(out.shape, (self.rows, layer.output_width(x.shape[1])))

    def test_backward_is_the_slope_of_forward(self) -> None:
        """The gradients of the input and of every parameter, by central differences."""
        x, params = self.inputs(), self._parameters()
        weights = np.random.default_rng(1).normal(size=self._forward(x, params).shape)
        got = self._gradients(x, params, weights)
        for array, gradient in zip((x, *params), got, strict=True):
            want = np.empty_like(array)
            for place in _places(array):
                want[place] = self._slope(x, params, weights, array, place)
            limit = self.rtol * max(1.0, float(np.abs(want).max(initial=0.0)))
            np.testing.assert_allclose(gradient, want, rtol=0, atol=limit)

    def test_same_call_same_bits(self) -> None:
        """The result depends only on the arguments, not on earlier values in the memory."""
        layer, x, params = self.layer(), self.inputs(), self._parameters()
        memory = Memory(np.float64)
        first = layer.forward(x, params, memory, _bits).copy()
        layer.forward(2 * x, params, memory, _bits)
        np.testing.assert_array_equal(layer.forward(x, params, memory, _bits), first)
        np.testing.assert_array_equal(self._forward(x, params), first)

    def test_in_place_gives_the_same(self) -> None:
        """Outputs and gradients have the same bits if the input can be overwritten."""
        x, params = self.inputs(), self._parameters()
        weights = np.ones_like(self._forward(x, params))
        apart = self._gradients(x, params, weights)
        in_place = self._gradients(x, params, weights, in_place=True)
        for array, other in zip(apart, in_place, strict=True):
            np.testing.assert_array_equal(array, other)

    def test_input_is_kept_where_it_must_be(self) -> None:
        """``forward`` overwrites its input only by ``memory.output_like``, and no parameters."""
        x, params = self.inputs(), self._parameters()
        before = [array.copy() for array in (x, *params)]
        self._gradients(x, params, np.ones_like(self._forward(x, params)))
        for array, kept in zip((x, *params), before, strict=True):
            np.testing.assert_array_equal(array, kept)

    def test_initial_values_depend_on_the_seed_alone(self) -> None:
        """The same random numbers give the same parameters."""
        for array, other in zip(self._parameters(), self._parameters(), strict=True):
            np.testing.assert_array_equal(array, other)

    def test_a_checkpoint_can_name_it(self) -> None:
        """A layer that is restored from its JSON description equals the original."""
        values = json.loads(json.dumps(self.layer().description()))
        np.testing.assert_equal(from_description(values) == self.layer(), True)

    def _parameters(self) -> list[Array]:
        params = [np.zeros(parameter.shape) for parameter in self.layer().parameters()]
        self.layer().initialise(params, lambda n: uniform(n, 7, 0))
        return params

    def _forward(self, x: Array, params: Parameters, *, training: bool = True) -> Array:
        bits = _bits if training else None
        return self.layer().forward(x, params, Memory(np.float64), bits)

    def _gradients(
        self, x: Array, params: Parameters, weights: Array, *, in_place: bool = False
    ) -> list[Array]:
        layer, memory = self.layer(), Memory(np.float64, in_place=in_place)
        grads = [np.full_like(param, np.nan) for param in params]
        layer.forward(x.copy() if in_place else x, params, memory, _bits)
        below = layer.backward(weights.copy(), params, grads, memory, needed=True)
        return [below, *grads]

    def _slope(
        self, x: Array, params: Parameters, weights: Array, array: Array, place: tuple[int, ...]
    ) -> float:
        """Return the slope of the weighted sum of the outputs along one element of ``array``."""
        kept, sums = array[place], []
        for step in (_STEP, -_STEP):
            array[place] = kept + step
            sums.append(float((self._forward(x, params) * weights).sum()))
        array[place] = kept
        return (sums[0] - sums[1]) / (2 * _STEP)


def _places(array: Array) -> Iterator[tuple[int, ...]]:
    yield from np.ndindex(array.shape)


def _bits(n: int) -> npt.NDArray[np.uint16]:
    return drop_bits(Stream(3, Purpose.DROPOUT), 0, 0, n)
