"""A known function that is part of the mean of a Gaussian process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from spearmint.gp.numerics import Array


class Trend(Protocol):
    """A function that a posterior adds to its mean, in the same units."""

    def __call__(self, points: Array) -> Array:
        """Return the values at ``points`` (m, D), shape ``(m,)``."""
        ...

    def with_gradient(self, points: Array) -> tuple[Array, Array]:
        """Return the values, and their gradients by the coordinates, shape ``(m, D)``."""
        ...
