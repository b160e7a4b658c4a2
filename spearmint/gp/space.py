"""Coordinates of parameters in the Gaussian process.

A number has one coordinate in [0, 1], which is logarithmic if its scale is. A number with ``k``
levels (an integer, or a float with a step) is in the middle of its cell. The coordinate of a
category is its index, which is compared only for equality. Random and Sobol points are drawn in the
*cube* [0, 1)^D.

A conditional dimension is active only where other dimensions have certain values. At other points
it has the coordinate of its centre: two points of another branch never differ in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row

# An integer with more levels is optimised like a continuous number and rounded at the end.
FEW_LEVELS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One parameter: a float, a float or integer with a step, or ``n_choices`` categories.

    ``low`` and ``high`` are valid values; ``high - low`` is a multiple of ``step`` (0: continuous).
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    step: float = 0.0
    n_choices: int = 0

    @property
    def is_category(self) -> bool:
        """Whether values are compared only for equality."""
        return self.n_choices > 0

    @property
    def n_levels(self) -> float:
        """Number of valid values; ``inf`` if continuous."""
        if self.is_category:
            return self.n_choices
        return round(self.high / self.step - self.low / self.step) + 1 if self.step else np.inf

    def from_cube(self, u: Array) -> Array:
        """Return the coordinates of valid values for ``u`` in [0, 1)."""
        if self.is_category:
            return np.minimum(np.floor(u * self.n_choices), self.n_choices - 1.0)
        return self.snap(u)

    def snap(self, c: Array) -> Array:
        """Return the coordinate of the valid value nearest to ``c``."""
        if self.is_category:
            return c
        return self.coordinate(self.value(c)) if self.step else np.clip(c, 0.0, 1.0)

    def value(self, c: Array) -> Array:
        """Return the valid values (categories: the index) at coordinates ``c``."""
        if self.is_category:
            return c
        low, high = self._ends()
        # Not low + c * (high - low): the difference of two floats can overflow.
        v = low * (1.0 - c) + high * c
        v = np.exp(v) if self.log else v
        if self.step:
            level = np.round(v / self.step - self.low / self.step)
            v = self.low + self.step * np.clip(level, 0.0, self.n_levels - 1.0)
        return np.clip(v, self.low, self.high)

    def smooth(self, c: Array) -> tuple[Array, Array]:
        """Return the values of numbers at ``c`` without rounding to levels, and their slopes."""
        low, high = self._ends()
        v = low * (1.0 - c) + high * c
        v, slope = (np.exp(v), np.exp(v) * (high - low)) if self.log else (v, high - low + 0.0 * v)
        return v, slope

    def coordinate(self, v: Array) -> Array:
        """Return the coordinates of native values ``v`` (categories: the index)."""
        if self.is_category:
            return v
        low, high = self._ends()
        v = np.log(v) if self.log else v
        width = 0.5 * high - 0.5 * low
        # The logarithms of two neighbouring floats can be equal.
        return np.clip((0.5 * v - 0.5 * low) / width, 0.0, 1.0) if width > 0.0 else 0.0 * v

    def _ends(self) -> tuple[float, float]:
        """Return the values, or their logarithms, at coordinates 0 and 1: half a step outside."""
        low, high = self.low - 0.5 * self.step, self.high + 0.5 * self.step
        return (float(np.log(low)), float(np.log(high))) if self.log else (low, high)


Test = tuple[int, tuple[float, ...]]
"""A dimension, and the native values (categories: indices) of which it must have one."""


@dataclass(frozen=True)
class Space:
    """The dimensions of a search, in order; points are rows of coordinates, shape ``(m, D)``.

    Attributes:
        dimensions: The D dimensions.
        conditions: The tests that must all hold for a conditional dimension to be active, by
            dimension. They include those of the dimensions that they test.
        linear: Linear constraints, which all proposals meet.
    """

    dimensions: tuple[Dimension, ...]
    conditions: tuple[tuple[int, tuple[Test, ...]], ...] = ()
    linear: tuple[Row, ...] = ()

    def __len__(self) -> int:
        """Return D, the number of dimensions."""
        return len(self.dimensions)

    @cached_property
    def is_category(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Mask of the categories, shape ``(D,)``."""
        return np.array([d.is_category for d in self.dimensions], dtype=bool)

    @cached_property
    def movable(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Indices of the dimensions that are optimised by gradients."""
        few = [d.is_category or d.n_levels <= FEW_LEVELS for d in self.dimensions]
        return np.flatnonzero(~np.array(few, dtype=bool))

    @cached_property
    def fixed(self) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        """Indices of the dimensions that are optimised by steps between levels."""
        return np.setdiff1d(np.arange(len(self)), self.movable)

    @cached_property
    def n_points(self) -> float:
        """Number of valid points, at most; ``inf`` if any dimension is continuous."""
        with np.errstate(over="ignore"):
            return float(np.prod([float(d.n_levels) for d in self.dimensions]))

    @cached_property
    def may_repeat(self) -> bool:
        """Whether two independent draws can be the same point."""
        return bool(self.conditions) or not np.isinf(self.n_points)

    @cached_property
    def centre(self) -> Array:
        """Coordinates of inactive dimensions, shape ``(D,)``: the centre, or the first category."""
        half = np.array([0.5])
        return np.array([0.0 if d.is_category else d.snap(half)[0] for d in self.dimensions])

    def active(self, points: Array) -> NDArray[np.bool_]:
        """Return which dimensions are active at ``points``, shape ``(m, D)``."""
        out = np.ones(points.shape, dtype=bool)
        for d, tests in self.conditions:
            for other, values in tests:
                found = np.round(self.dimensions[other].value(points[:, other]))
                out[:, d] &= np.isin(found, values)
        return out

    def meets(self, points: Array, *, loose: bool = False) -> NDArray[np.bool_]:
        """Return which points meet the linear constraints, shape ``(m,)``.

        Args:
            points: Valid points, shape ``(m, D)``.
            loose: Whether rounding errors are allowed, as for points of users.
        """
        out = np.ones(len(points), dtype=bool)
        active = self.active(points) if self.conditions else None
        values = {d: self.dimensions[d].value(points[:, d]) for row in self.linear for d in row.at}
        for row in self.linear:
            above = sum(w * values[d] for w, d in zip(row.weights, row.at, strict=True)) - row.high
            inside = (np.abs(above) if row.is_equal else above) <= row.room(loose=loose)
            out &= inside if active is None else inside | ~active[:, row.at].all(axis=1)
        return out

    def together(self, points: Array) -> Array:
        """Return how many dimensions are active, at most, where each one is, shape ``(D,)``.

        A dimension that is active at none of ``points`` counts as active with all others.
        """
        active = self.active(points)
        most = np.max(np.where(active, active.sum(axis=1)[:, None], 0), axis=0)
        return np.where(most > 0, most, len(self)).astype(float)

    def settle(self, points: Array) -> Array:
        """Return ``points`` with the coordinates of inactive dimensions in their centre."""
        return np.where(self.active(points), points, self.centre) if self.conditions else points

    def from_cube(self, cube: Array) -> Array:
        """Return the valid points for rows of [0, 1)^D."""
        return self.settle(self.unsettled(cube))

    def unsettled(self, cube: Array) -> Array:
        """Return the points for rows of [0, 1)^D as if all dimensions were active."""
        return self._by_dimension("from_cube", cube)

    def snap(self, points: Array) -> Array:
        """Return the valid points nearest to ``points``."""
        return self.settle(self._by_dimension("snap", points))

    def coordinates(self, values: Array) -> Array:
        """Return the points for rows of native values (categories: the index)."""
        return self._by_dimension("coordinate", values)

    def values(self, point: Array) -> list[float]:
        """Return the native values (categories: the index) of one valid point."""
        pairs = zip(self.dimensions, point, strict=True)
        return [float(d.value(np.asarray(c, dtype=np.float64))) for d, c in pairs]

    def _by_dimension(self, method: str, rows: Array) -> Array:
        columns = [getattr(d, method)(rows[:, i]) for i, d in enumerate(self.dimensions)]
        return np.stack(columns, axis=1) if columns else rows.copy()


def distance(points: Array, others: Array) -> Array:
    """Return the largest coordinate difference of every pair, shape ``(m, k)``."""
    return np.asarray(np.abs(points[:, None, :] - others[None, :, :]).max(axis=2))


def levels(dimension: Dimension) -> Sequence[float]:
    """Return the coordinates of all valid values of a dimension with few levels."""
    k = int(dimension.n_levels)
    if dimension.is_category:
        return [float(i) for i in range(k)]
    values = np.asarray(dimension.low + dimension.step * np.arange(k), dtype=np.float64)
    return [float(c) for c in dimension.coordinate(values)]
