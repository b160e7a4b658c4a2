"""A custom layer: import it where the network is made."""

from dataclasses import dataclass

import numpy as np

from pycuda_nn.layers import Layer


@dataclass(frozen=True)
class LeakyRelu(Layer):
    """x where it is above 0, else slope x."""

    slope: float = 0.01

    def forward(self, x, params, memory, bits):
        """Return the activations; keep the input."""
        memory.kept["x"] = x
        return np.where(x > 0, x, self.slope * x)

    def backward(self, delta, params, grads, memory, *, needed):
        """Return the gradient with respect to the input."""
        return np.where(memory.kept["x"] > 0, delta, self.slope * delta)
