"""Linear constraints of numeric variables, which all proposals meet: ``units_1 >= units_2``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# The sums of a point that a user wrote are rounded: 0.1 + 0.2 is above 0.3. They can exceed a limit
# by this share of their terms.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class LinearConstraint:
    """A sum of weighted values that is at most, below or equal to a limit.

    It counts only at points where all its variables are active.

    Attributes:
        text: The constraint as the user wrote it.
        weights: Each element of a variable, and its weight, which is not 0.
        high: The limit.
        is_equal: Whether the sum must be equal to the limit.
        is_strict: Whether the sum must be below the limit.
        is_whole: Whether all variables are INT, and all weights whole: the sums are exact.
    """

    text: str
    weights: tuple[tuple[str, float], ...]
    high: float
    is_equal: bool = False
    is_strict: bool = False
    is_whole: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The elements of variables that it has."""
        return tuple(name for name, _ in self.weights)

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Return whether a point meets it; True if the point omits one of its variables."""
        if any(name not in values for name in self.names):
            return True
        terms = [weight * float(values[name]) for name, weight in self.weights]
        return self.allows(sum(terms), sum(map(abs, terms)))

    def allows(self, total: float, size: float) -> bool:
        """Return whether the sum can be ``total``; ``size`` is the sum of the absolute terms."""
        room = _ROUNDING * (size + abs(self.high))
        if self.is_equal:
            return abs(total - self.high) <= room
        return total < self.high - room if self.is_strict else total <= self.high + room

    def __str__(self) -> str:
        """Return its text."""
        return self.text


def violated(
    constraints: tuple[LinearConstraint, ...], values: Mapping[str, Any]
) -> LinearConstraint | None:
    """Return the first constraint that a point, by element name, does not meet; None if none."""
    return next((each for each in constraints if not each.holds(values)), None)


def texts_of(constraints: tuple[LinearConstraint, ...]) -> list[str]:
    """Return the text of each ``require``, once."""
    return list(dict.fromkeys(each.text for each in constraints))
