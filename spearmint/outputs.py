"""What a trial returns: its objectives, and values with limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

OBJECTIVE, MAIN = "objective", "main"
"""Names of the objective in the dict that a trial returns; the second is that of HIPS."""

OBJECTIVE_LINE = "(objective) "
"""Start of the names of :func:`output_lines` for objectives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One block ``objective`` of config.pb.

    Attributes:
        name: Name of the value in the dict that a trial returns.
        maximize: Whether larger values are better.
        reference: The worst value that is of use; None to follow the trials.
    """

    name: str
    maximize: bool = False
    reference: float | None = None

    def loss(self, value: float) -> float:
        """Return the value, negated if larger ones are better; infinite if it is not finite."""
        if not math.isfinite(value):
            return math.inf
        return -value if self.maximize else value

    def describe(self) -> str:
        """Return ``minimize`` or ``maximize`` for messages."""
        return "maximize" if self.maximize else "minimize"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """One block ``constraint`` of config.pb: a value of each trial, and its limits.

    Attributes:
        name: Name of the value in the dict that a trial returns.
        low, high: Limits, both inclusive; infinite without a limit.
    """

    name: str
    low: float = -math.inf
    high: float = math.inf

    def gaps(self, value: float) -> dict[str, float]:
        """Return by limit how far ``value`` is above it, negative within it, in its units.

        This is the form of Optuna's constraints. The name of the only limit is that of the
        constraint; otherwise ``(min)`` and ``(max)`` follow it.
        """
        found = {"min": self.low - value, "max": value - self.high}
        limits = {"min": self.low, "max": self.high}
        known = [key for key, limit in limits.items() if math.isfinite(limit)]
        if len(known) == 1:
            return {self.name: found[known[0]]}
        return {f"{self.name} ({key})": found[key] for key in known}

    def excess(self, value: float) -> float:
        """Return how far ``value`` is outside, in units of the limit (of 1 if that is 0)."""
        if self.low <= value <= self.high:
            return 0.0
        limit = self.low if value < self.low else self.high
        return abs(value - limit) / (abs(limit) or 1.0)

    def describe(self) -> str:
        """Return ``at most 80`` for messages."""
        if math.isinf(self.low):
            return f"at most {self.high!r}"
        if math.isinf(self.high):
            return f"at least {self.low!r}"
        return f"from {self.low!r} to {self.high!r}"


def output_lines(
    objectives: Sequence[Objective], constraints: Iterable[Constraint]
) -> dict[str, str]:
    """Return a line for each objective and constraint, by a name that no variable has."""
    goals = {f"{OBJECTIVE_LINE}{each.name}": each.describe() for each in objectives}
    return goals | {f"(constraint) {each.name}": each.describe() for each in constraints}
