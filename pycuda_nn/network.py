"""A network: a tuple of layers, a loss, and the place of each parameter in one flat buffer.

Notation, used in all files:
    n     rows of the data              d      columns of the data
    L     layers with weights           m      rows of a minibatch
    W_l   weights, (fan_in, fan_out)    b_l    bias, (fan_out,)
    z_l   = a_{l-1} W_l + b_l           a_l    = activation(z_l), a_0 = x
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import Activation, Dense, Dropout, Layer, Loss, Parameter, Softmax, loss_of
from pycuda_nn.rng import uniform

Array = npt.NDArray[Any]
_SOFTMAX = Softmax()


@dataclass(frozen=True)
class Network:
    """Layers in order, and a loss, which applies its link function to the last output.

    Example:
        >>> from pycuda_nn.layers import Activation, Dense, Softmax
        >>> from pycuda_nn.network import Network
        >>> network = Network((Dense(64, 32), Activation("relu"), Dense(32, 10)), loss=Softmax())
        >>> network == Network.from_sizes((64, 32, 10), activation="relu", loss="softmax")
        True

    Raises:
        ConfigError: A layer does not accept the width of the layer before it, or no layer has
            weights.
    """

    layers: tuple[Layer, ...]
    loss: Loss = _SOFTMAX

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        if not any(layer.input_width and layer.parameters() for layer in self.layers):
            raise ConfigError("a network needs a layer with weights", "Add a Dense layer.")
        width = self.inputs
        for number, layer in enumerate(self.layers, start=1):
            if layer.input_width not in (None, width):
                raise ConfigError(
                    f"layer {number}, {layer}, needs {layer.input_width} columns, "
                    f"but the layer before it outputs {width}"
                )
            width = layer.output_width(width)

    @classmethod
    def from_sizes(
        cls,
        sizes: Sequence[int],
        *,
        activation: str = "relu",
        loss: str = "softmax",
        dropout: float = 0.0,
    ) -> Network:
        """Return dense layers; an activation and dropout follow each of them but the last.

        Args:
            sizes: Widths from the input to the output, e.g. ``(64, 128, 10)``.
            activation: Its name, such as ``relu``, or a formula of ``x``.
            loss: ``softmax``, ``logistic`` or ``squared``, or a formula.
            dropout: Probability of dropping an output of a hidden layer; 0 for no dropout layers.
        """
        between: list[Layer] = [Activation(activation)]
        between += [Dropout(dropout)] if dropout > 0 else []
        layers: list[Layer] = []
        for fan_in, fan_out in itertools.pairwise(sizes):
            layers += [*(between if layers else ()), Dense(fan_in, fan_out)]
        return cls(tuple(layers), loss=loss_of(loss))

    @property
    def inputs(self) -> int:
        """Number of input columns."""
        return next(layer.input_width for layer in self.layers if layer.input_width)

    @property
    def widths(self) -> tuple[int, ...]:
        """Output columns of each layer."""
        widths = [self.inputs]
        for layer in self.layers:
            widths.append(layer.output_width(widths[-1]))
        return tuple(widths[1:])

    @property
    def outputs(self) -> int:
        """Output columns of the last layer."""
        return self.widths[-1]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters, layer by layer."""
        return tuple(itertools.chain(*(layer.parameters() for layer in self.layers)))

    @property
    def n_weights(self) -> int:
        """Number of parameters that ``l2`` applies to; they come first in the flat buffer."""
        return sum(parameter.size for parameter in self.parameters if parameter.decay)

    @property
    def n_params(self) -> int:
        """Number of weights and biases."""
        return sum(parameter.size for parameter in self.parameters)

    def views_by_layer(self, flat: Array) -> list[tuple[Array, ...]]:
        """Return the parameters of each layer as views of ``flat``: all weights, then biases."""
        place = {True: 0, False: self.n_weights}
        views = []
        for layer in self.layers:
            of_layer = []
            for parameter in layer.parameters():
                start = place[parameter.decay]
                of_layer.append(flat[start : start + parameter.size].reshape(parameter.shape))
                place[parameter.decay] += parameter.size
            views.append(tuple(of_layer))
        return views

    def views(self, flat: Array) -> list[tuple[Array, ...]]:
        """Return the views of the layers that have parameters; (W_l, b_l) for a dense layer."""
        return [views for views in self.views_by_layer(flat) if views]

    def initial_params(self, seed: int) -> npt.NDArray[np.float32]:
        """Return a flat buffer of initial values, filled by ``initialise`` of each layer."""
        flat = np.zeros(self.n_params, dtype=np.float32)
        trained = [layer for layer in self.layers if layer.parameters()]
        for number, (layer, views) in enumerate(zip(trained, self.views(flat), strict=True)):
            layer.initialise(views, lambda n, number=number: uniform(n, seed, number))  # type: ignore[misc]
        return flat
