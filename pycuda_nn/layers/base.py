"""What a layer is: a shape rule, parameters, and numpy's forward and backward."""

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
    """One array that is trained.

    Attributes:
        shape: Its shape.
        decay: Whether ``l2`` acts on it: True for weights, False for biases.
    """

    shape: tuple[int, ...]
    decay: bool = True

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return math.prod(self.shape)


class Described:
    """A frozen dataclass that a checkpoint can name: its type and its fields."""

    def __init_subclass__(cls) -> None:
        """Make the type known to :func:`from_description`."""
        _TYPES[f"{cls.__module__}:{cls.__qualname__}"] = cls

    def description(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        kind = type(self)
        return {"type": f"{kind.__module__}:{kind.__qualname__}", **asdict(self)}  # type: ignore[call-overload]


def from_description(values: dict[str, Any]) -> Any:
    """Return the layer or loss that ``description`` gave ``values``.

    Raises:
        ValueError: No type of this name is known; import its module first.
    """
    name = values["type"]
    if name not in _TYPES:
        raise ValueError(f"unknown layer '{name}': import the module that defines it first")
    return _TYPES[name](**{key: value for key, value in values.items() if key != "type"})


class Layer(Described, ABC):
    """One layer; make a subclass a frozen dataclass of its settings.

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
        fresh_output: Whether ``forward`` returns an array that nobody reads later, so that the
            next layer may overwrite it. False is always safe.
        draws: Whether ``forward`` takes random bits in training.
    """

    fresh_output: ClassVar[bool] = False
    draws: ClassVar[bool] = False

    @property
    def input_width(self) -> int | None:
        """Columns that the layer takes; None for any number."""
        return None

    def output_width(self, width: int) -> int:
        """Return the columns of the output for ``width`` columns of input: the shape rule."""
        return width

    def parameters(self) -> tuple[Parameter, ...]:
        """Return what is trained; nothing by default."""
        return ()

    def initialise(self, params: Parameters, uniform: Uniform) -> None:
        """Fill ``params``, which are zero, in place.

        Args:
            params: One array for each of :meth:`parameters`.
            uniform: Returns n float32 in [-1, 1), the same ones for the same seed and layer.
        """

    @abstractmethod
    def forward(self, x: Array, params: Parameters, memory: Memory, bits: Bits | None) -> Array:
        """Return the output, (rows, output width).

        Args:
            x: Input, (rows, width); to be overwritten by ``memory.output_like`` only.
            params: One array for each of :meth:`parameters`.
            memory: Arrays to reuse, and ``memory.kept`` for what backward needs.
            bits: Returns n random uint16 of this step; None in evaluation.
        """

    @abstractmethod
    def backward(
        self, delta: Array, params: Parameters, grads: Parameters, memory: Memory, *, needed: bool
    ) -> Array:
        """Fill ``grads`` and return the gradient of the input.

        Args:
            delta: Gradient of the output; may be overwritten.
            params: As in :meth:`forward`.
            grads: One array for each parameter, overwritten.
            memory: That of the forward pass.
            needed: Whether the gradient of the input is used; else any array will do.
        """
