"""All calls of scipy's solver of mixed-integer linear programs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from spearmint.gp.numerics import Array
from spearmint.gp.rows import Row
from spearmint.gp.space import Space

# Tolerance of the solver, in units of a row whose largest weight is 1.
TOLERANCE = 1e-6
_TIME_LIMIT_S, _ROUNDS, _ROUNDING = 10.0, 8, 1e-9


class Program:
    """The linear constraints of one branch, in the dimensions that are free.

    Each free dimension is scaled by its bounds, after the constraints have tightened these.

    Args:
        space: The space.
        rows: The constraints that count.
        fixed: Native values of dimensions that do not change.
    """

    def __init__(self, space: Space, rows: Iterable[Row], fixed: Mapping[int, float]) -> None:
        self._space, self._rows, self._fixed = space, tuple(rows), fixed
        used = sorted({d for row in self._rows for d in row.at})
        self.free = [d for d in used if d not in fixed]
        dims = space.dimensions
        self._low = {d: fixed.get(d, dims[d].low) for d in used}
        self._high = {d: fixed.get(d, dims[d].high) for d in used}
        self._is_empty = not self._tighten()
        self._unit = np.array([self._unit_of(d) for d in self.free])
        self._matrix, self._limits = self._scaled()

    def _tighten(self) -> bool:
        """Narrow the bounds by each constraint alone; return whether values are left."""
        for _ in range(_ROUNDS):
            for row in self._rows:
                self._tighten_by(row.at, row.weights, row.high + row.room(loose=True))
                if row.is_equal:
                    negated = tuple(-weight for weight in row.weights)
                    self._tighten_by(row.at, negated, -row.high + row.room(loose=True))
        return all(self._low[d] <= self._high[d] for d in self._low)

    def _tighten_by(self, at: tuple[int, ...], weights: tuple[float, ...], high: float) -> None:
        least = [self._least(weight, d) for weight, d in zip(weights, at, strict=True)]
        total = sum(least)
        for weight, d, own in zip(weights, at, least, strict=True):
            self._narrow(d, (high - (total - own)) / weight, below=weight > 0.0)

    def _least(self, weight: float, d: int) -> float:
        return min(weight * self._low[d], weight * self._high[d])

    def _narrow(self, d: int, limit: float, *, below: bool) -> None:
        dim = self._space.dimensions[d]
        if dim.step and d not in self._fixed:
            level = (limit - dim.low) / dim.step
            level = math.floor(level + _ROUNDING) if below else math.ceil(level - _ROUNDING)
            limit = dim.low + dim.step * level
        slack = _ROUNDING * (abs(limit) + abs(self._low[d])) if d in self._fixed else 0.0
        if below:
            self._high[d] = min(self._high[d], limit + slack)
        else:
            self._low[d] = max(self._low[d], limit - slack)

    def _unit_of(self, d: int) -> float:
        return self._space.dimensions[d].step or self._high[d] - self._low[d]

    def _scaled(self) -> tuple[Array, Array]:
        """Return the matrix and the limits in scaled variables; largest weights are 1."""
        place = {d: i for i, d in enumerate(self.free)}
        matrix, limits = np.zeros((len(self._rows), len(self.free))), np.zeros(len(self._rows))
        for i, row in enumerate(self._rows):
            limits[i] = row.high
            for weight, d in zip(row.weights, row.at, strict=True):
                limits[i] -= weight * (self._low[d] if d in place else self._fixed[d])
                if d in place:
                    matrix[i, place[d]] = weight * self._unit[place[d]]
            scale = np.abs(matrix[i]).max(initial=0.0) or max(row.size, 1e-300)
            matrix[i] /= scale
            limits[i] /= scale
        return matrix, limits

    def margin(self) -> tuple[float, Array] | None:
        """Return how far the constraints of FLOAT can be met at most, and a point; None if none.

        The margin is at most 1, and the point has native values, shape ``(len(free),)``.
        """
        if self._is_empty:
            return None
        n, soft = len(self.free), self._soft()
        whole = self._solve(
            np.append(np.zeros(n), -1.0),
            [(np.column_stack((self._matrix, soft)), self._lows(0.0), self._limits)],
            np.append(self._tops(), 1.0),
            np.append(self._is_integer(), 0),
        )
        return None if whole is None else (float(whole[-1]), self._native(whole[:n]))

    def nearest(self, target: Array, inside: float) -> Array | None:
        """Return the feasible native values nearest to ``target``, shape ``(len(free),)``.

        Args:
            target: Native values.
            inside: How far the constraints of FLOAT are met, in units of ``margin``.
        """
        if self._is_empty:
            return None
        n = len(self.free)
        low = np.array([self._low[d] for d in self.free])
        unit = np.where(self._unit > 0.0, self._unit, 1.0)
        wanted = np.clip((target - low) / unit, 0.0, self._tops())
        eye, none = np.eye(n), np.zeros((len(self._rows), n))
        blocks = [
            (
                np.hstack((self._matrix, none)),
                self._lows(0.0),
                self._limits - inside * self._soft(),
            ),
            (np.hstack((-eye, eye)), -wanted, np.full(n, np.inf)),
            (np.hstack((eye, eye)), wanted, np.full(n, np.inf)),
        ]
        tops = self._tops()
        found = self._solve(
            np.concatenate((np.zeros(n), 1.0 / np.maximum(tops, 1.0))),
            blocks,
            np.concatenate((tops, np.full(n, np.inf))),
            np.concatenate((self._is_integer(), np.zeros(n))),
        )
        return None if found is None else self._native(found[:n])

    def _soft(self) -> Array:
        """Return 1 for each constraint that has a margin, because its sum is not exact."""
        return np.array([0.0 if row.is_equal or row.is_whole else 1.0 for row in self._rows])

    def _lows(self, room: float) -> Array:
        equal = np.array([row.is_equal for row in self._rows], dtype=bool)
        return np.where(equal, self._limits - room, -np.inf)

    def _tops(self) -> Array:
        """Return the largest value of each scaled variable; the smallest is 0."""
        width = np.array([self._high[d] - self._low[d] for d in self.free])
        tops = width / np.where(self._unit > 0.0, self._unit, 1.0)
        return np.where(self._is_integer() > 0, np.round(tops), tops)

    def _is_integer(self) -> Array:
        return np.array([1.0 if self._space.dimensions[d].step else 0.0 for d in self.free])

    def _native(self, scaled: Array) -> Array:
        rounded = np.where(self._is_integer() > 0, np.round(scaled), scaled)
        low = np.array([self._low[d] for d in self.free])
        return np.asarray(low + self._unit * rounded)

    def _solve(
        self,
        cost: Array,
        blocks: list[tuple[Array, Array, Array]],
        tops: Array,
        integrality: Array,
    ) -> Array | None:
        constraints = [LinearConstraint(*block) for block in blocks if len(block[0])]
        found = milp(
            cost,
            constraints=constraints,
            bounds=Bounds(np.zeros(len(cost)), tops),
            integrality=integrality.astype(int),
            options={"time_limit": _TIME_LIMIT_S, "mip_rel_gap": 1e-3},
        )
        return None if found.x is None else np.asarray(found.x)
