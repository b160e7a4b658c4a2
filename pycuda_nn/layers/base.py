"""Base class of layers: shape rule, parameters, and forward and backward passes in numpy."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pycuda_nn.layers.memory import Memory

Array = npt.NDArray[Any]
Parameters = Sequence[Array]
Bits = Callable[[int], npt.NDArray[np.uint16]]
Uniform = Callable[[int], npt.NDArray[np.float32]]

_TYPES: dict[str, type[Any]] = {}


@dataclass(frozen=True)
class Parameter:
    """A trained array.

    Attributes:
        shape: Shape of the array.
        decay: Whether ``l2`` applies: True for weights, False for biases.
    """

    shape: tuple[int, ...]
    decay: bool = True

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class Described:
    """A frozen dataclass that a checkpoint stores as its type and fields."""

    def __init_subclass__(cls) -> None:
        """Register the type for :func:`from_description`."""
        _TYPES[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def description(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        kind = type(self)
        return {"type": f"{kind.__module__}:{kind.__qualname__}", **asdict(self)}  # type: ignore[call-overload]


def from_description(values: dict[str, Any]) -> Any:
    """Return the layer or loss whose ``description`` returned ``values``.

    Raises:
        ValueError: The type is unknown: its module is not imported.
    """
    name = values["type"]
    if name not in _TYPES:
        raise ValueError(f"unknown layer '{name}': import the module that defines it first")
    return _TYPES[name](**{key: value for key, value in values.items() if key != "type"})


class Layer(Described, ABC):
    """A layer; a subclass must be a frozen dataclass of its settings.

    Example:
        >>> import numpy as np
        >>> from dataclasses import dataclass
        >>> from pycuda_nn.layers import Layer, Memory
        >>> @dataclass(frozen=True)
        ... class Double(Layer):
        ...     def forward(self, x, params, memory, bits):
        ...         return 2 * x
        ...     def backward(self, delta, params, grads, memory, *, needed):
        ...         return 2 * delta
        >>> Double().forward(np.ones((1, 3)), (), Memory(float), None)
        array([[2., 2., 2.]])

    Attributes:
        fresh_output: Whether the next layer can overwrite the array that ``forward`` returns,
            because nothing reads it later. False is always safe.
        draws: Whether ``forward`` draws random bits in training.
    """

    fresh_output: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    @property
    def input_width(self) -> int | None:
        """Number of input columns; None for any number."""
        return None

    def output_width(self, width: int) -> int:
        """Return the number of output columns for ``width`` input columns: the shape rule."""
        return width

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the trained arrays; none by default."""
        return ()

    def initialise(self, params: Parameters, uniform: Uniform) -> None:
        """Fill ``params``, which are zero, in place.

        Args:
            params: One array for each of :meth:`parameters`.
            uniform: Returns n float32 numbers in [-1, 1); seed and layer determine the numbers.
        """

    @abstractmethod
    def forward(self, x: Array, params: Parameters, memory: Memory, bits: Bits | None) -> Array:
        """Return the output, (rows, output width).

        Args:
            x: Input, (rows, width); only ``memory.output_like`` may overwrite it.
            params: One array for each of :meth:`parameters`.
            memory: Arrays to reuse; ``memory.kept`` stores values for backward.
            bits: Returns n random uint16 of this step; None in evaluation.
        """

    @abstractmethod
    def backward(
        self, delta: Array, params: Parameters, grads: Parameters, memory: Memory, *, needed: bool
    ) -> Array:
        """Fill ``grads`` and return the gradient of the input.

        Args:
            delta: Gradient of the output; can be overwritten.
            params: As in :meth:`forward`.
            grads: One array for each parameter, overwritten.
            memory: The memory of the forward pass.
            needed: Whether the gradient of the input is used; if not, return any array.
        """
