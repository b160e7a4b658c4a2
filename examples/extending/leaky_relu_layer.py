"""A layer that pycuda_nn does not have: x where it is positive, else a little of it."""

from dataclasses import dataclass

import numpy as np

from pycuda_nn.layers import Layer


@dataclass(frozen=True)
class LeakyRelu(Layer):
    """Multiply what is negative by ``slope``."""

    slope: float = 0.01

    def forward(self, x, params, memory, bits):
        """Return the output; keep the slope of every element for the way back."""
        memory.kept["slopes"] = np.where(x > 0, 1.0, self.slope).astype(x.dtype)
        return x * memory.kept["slopes"]

    def backward(self, delta, params, grads, memory, *, needed):
        """Return the gradient of the input."""
        return delta * memory.kept["slopes"]
