"""Linear constraints of a space: weighted sums of native values with a limit."""

from __future__ import annotations

from dataclasses import dataclass

# Proposals are inside of a limit by a share of the sum's size: the user's own code can add in
# another order, with other rounding. Points of users can be outside by the last share.
INSIDE, STRICTLY_INSIDE, OUTSIDE = 1e-12, 2e-9, 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """A weighted sum of native values that is at most, or equal to, a limit.

    It counts only at points where all its dimensions are active.

    Attributes:
        at: The dimensions.
        weights: Their weights, which are not 0.
        high: The limit.
        is_equal: Whether the sum must be equal to the limit.
        is_strict: Whether the sum must be below the limit.
        is_whole: Whether the sum is exact: of whole numbers with whole weights.
        size: Largest absolute sum of the terms and of the limit, for rounding.
        text: Its text, for messages.
    """

    at: tuple[int, ...]
    weights: tuple[float, ...]
    high: float
    is_equal: bool = False
    is_strict: bool = False
    is_whole: bool = False
    size: float = 1.0
    text: str = ""

    def room(self, *, loose: bool = False) -> float:
        """Return how far the sum can be above the limit; negative for inside of it."""
        if loose or self.is_equal or self.is_whole:
            return OUTSIDE * self.size
        return -(STRICTLY_INSIDE if self.is_strict else INSIDE) * self.size
