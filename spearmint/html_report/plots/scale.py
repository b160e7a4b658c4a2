"""Scales of axes: map values to positions between 0 and 1, and choose ticks and their labels.

Plots draw in these units. They therefore need no code for values such as 1e300, for infinite values
and for categories, and matplotlib never gets a number that overflows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spearmint.model import Kind, Value, Variable

Array = npt.NDArray[np.float64]

_BEYOND = 5.0  # axis lengths: a line to an outlier leaves the plot steeply, but can be drawn
_OUTLIER = 6.0  # outlier: this many times as far from the best value as the third quartile
_LOG_RATIO, _LOG_RATIO_MAXIMIZE = 20.0, 1e4  # a log scale hides differences of large values
_FEWEST_MARKS = 3  # of a log axis: two marks do not show that the axis is logarithmic
_MOST_DIGITS = 7
_TINY = 1e-300
_MANY_CHOICES = 20
_SPREAD = 0.36  # fraction of the width of a choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps values to 0..1.

    Attributes:
        low: Value at 0; unused with ``options``.
        high: Value at 1; unused with ``options``.
        options: Categories; each is in the middle of its part of the axis.
    """

    low: float = 0.0
    high: float = 0.0
    log: bool = False
    integer: bool = False
    options: tuple[str, ...] = ()

    def position(self, values: Sequence[Value]) -> Array:
        """Return the positions of ``values``; outside 0..1 beyond low and high, never infinite."""
        if self.options:
            known = {option: (i + 0.5) / len(self.options) for i, option in enumerate(self.options)}
            return np.array([known[str(value)] for value in values], dtype=np.float64)
        numbers = np.array([float(value) for value in values], dtype=np.float64)
        low, high = self._mapped(np.array([self.low, self.high]))
        with np.errstate(over="ignore", invalid="ignore"):
            place = (
                (self._mapped(numbers) - low) / (high - low) if high > low else numbers - self.low
            )
        if not high > low:  # a single value is in the middle
            place = np.where(place == 0.0, 0.5, np.where(place > 0.0, np.inf, -np.inf))
        places: Array = np.clip(np.nan_to_num(place, nan=np.inf), -_BEYOND, 1.0 + _BEYOND)
        return places

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return the positions and labels of at most about ``most`` ticks."""
        if self.options:
            every = math.ceil(len(self.options) / max(most, 8))
            return [
                ((i + 0.5) / len(self.options), shorten(self.options[i], 16))
                for i in range(0, len(self.options), every)
            ]
        marks = self._marks(most)
        places = self.position(marks)
        return list(zip(places.tolist(), labels(marks), strict=True))

    def _mapped(self, numbers: Array) -> Array:
        """Convert ``numbers`` to units in which differences are finite."""
        if not self.log:
            return numbers / 4.0
        with np.errstate(divide="ignore"):
            exponents: Array = np.log10(np.maximum(numbers, 0.0))
        return exponents

    def _marks(self, most: int) -> list[float]:
        if not self.high > self.low:
            return [self.low]
        if not self.log:
            return _round_marks(self.low, self.high, most, integer=self.integer)
        for digits in ((1,), (1, 3), (1, 2, 5)):
            marks = _decade_marks(self.low, self.high, most, digits)
            if len(marks) >= _FEWEST_MARKS:
                return marks
        return _round_marks(self.low, self.high, most, integer=self.integer)


def variable_scale(variable: Variable) -> Scale:
    """Return the axis of a variable, between its bounds."""
    if variable.kind is Kind.ENUM:
        return Scale(options=variable.options)
    integer = variable.kind is Kind.INT
    return Scale(low=variable.low, high=variable.high, log=variable.log, integer=integer)


def places_of(variable: Variable, values: Sequence[Value | None]) -> Array:
    """Return the positions of ``values`` on the axis of a variable; NaN where it is inactive."""
    places: Array = np.full(len(values), np.nan)
    known = [i for i, value in enumerate(values) if value is not None]
    places[known] = variable_scale(variable).position([v for v in values if v is not None])
    return places


def variable_places(variable: Variable, values: Sequence[Value | None]) -> Array:
    """Return the positions of trials on the axis of a variable; spread equal choices a little."""
    places = places_of(variable, values)
    choices = len(variable.options) or variable.high - variable.low + 1.0
    if variable.kind is Kind.FLOAT or variable.log or choices > _MANY_CHOICES:
        return places
    # Any number of multiples of the golden ratio, modulo 1, fills the interval evenly.
    shift = (np.arange(len(places)) * 0.6180339887) % 1.0 - 0.5
    moved: Array = places + shift * _SPREAD / choices
    return moved


def value_scale(values: Sequence[float], *, maximize: bool) -> Scale:
    """Return a scale that shows the best of ``values`` in detail.

    The scale is logarithmic if all values are positive and span decades. Bad outliers are beyond
    its end. Values that are not finite are ignored.
    """
    finite = sorted(float(value) for value in values if math.isfinite(value))
    if not finite:
        return Scale()
    ratio = _LOG_RATIO_MAXIMIZE if maximize else _LOG_RATIO
    log = finite[0] > 0 and math.log10(finite[-1]) - math.log10(finite[0]) >= math.log10(ratio)
    sign = -1.0 if maximize else 1.0
    mapped = sorted(sign * (math.log10(value) if log else value) for value in finite)
    best, quartile = mapped[0], mapped[(3 * (len(mapped) - 1) + 3) // 4]
    limit = best + _OUTLIER * (quartile - best) if quartile > best else math.inf
    kept = [value for value in finite if sign * (math.log10(value) if log else value) <= limit]
    return Scale(low=kept[0], high=kept[-1], log=log)


def labels(marks: Sequence[float]) -> list[str]:
    """Return ``marks`` with as few digits as possible; close marks are relative to the first."""
    steps = [abs(b / 4 - a / 4) * 4 for a, b in pairwise(marks)]
    error = 0.02 * min(steps, default=abs(marks[0]) * 1e-3)
    for digits in range(1, 17):
        texts = [f"{mark:.{digits}g}" for mark in marks]
        if all(abs(float(text) - mark) <= error for text, mark in zip(texts, marks, strict=True)):
            break
    if digits > _MOST_DIGITS and len(marks) > 1:
        return [_plain(marks[0], 6), *(f"+{_plain(mark - marks[0], 2)}" for mark in marks[1:])]
    return [_plain(mark, digits) for mark in marks]


def _plain(mark: float, digits: int) -> str:
    if mark == 0:
        return "0"
    if 1e-4 <= abs(mark) < 1e6:
        return f"{mark:.{max(digits, 6)}g}"
    mantissa, _, exponent = f"{mark:.{digits - 1}e}".partition("e")
    return f"{float(mantissa):.{digits}g}e{int(exponent)}"


def shorten(text: str, most: int) -> str:
    """Return ``text`` in one printable line of at most ``most`` characters, cut in the middle."""
    line = "".join(letter if letter.isprintable() else "\N{MIDDLE DOT}" for letter in text)
    if len(line) <= most:
        return line
    tail = (most - 1) // 3
    return f"{line[: most - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{line[len(line) - tail :]}"


def _round_marks(low: float, high: float, most: int, *, integer: bool) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten from ``low`` to ``high``."""
    least = high / most - low / most
    if least < _TINY:
        return [low, high]
    power = 10.0 ** math.floor(math.log10(least))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least)
    if integer:
        step = max(1.0, step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    marks = [count * step for count in range(first, last + 1)]
    return marks or [low, high]


def _decade_marks(low: float, high: float, most: int, digits: Sequence[int]) -> list[float]:
    """Return ``digits`` times every n-th power of ten from ``low`` to ``high``."""
    first, last = math.floor(math.log10(low)), math.floor(math.log10(high))
    every = math.ceil((last - first) / most) or 1
    numbers = [
        float(f"{digit}e{decade}")
        for decade in range(first, last + 1)
        for digit in digits
        if decade % every == 0
    ]
    return [number for number in numbers if low <= number <= high]
