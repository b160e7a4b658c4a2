"""Timing of several ways to do one thing, in a bounded time."""

from __future__ import annotations

import math
from collections.abc import Callable

_ROUND_S = 0.02  # of runs in a row: enough to tell 0.5 %
_CLEARLY = 1.05  # times the best: no luck explains that over a round


class Stopwatch:
    """Times one way after the other; long runs fewer times, and once when clearly slower."""

    def __init__(self, *, runs: int, rounds: int, limit_s: float) -> None:
        """Start with no way known.

        Args:
            runs, rounds: A way's time is the least of ``rounds`` rounds of ``runs`` runs, where
                such a round is short.
            limit_s: Once the runs took so long in all, no further way is timed.
        """
        self._runs, self._rounds, self._limit_s = runs, rounds, limit_s
        self._spent_s, self._best_s = 0.0, math.inf

    def seconds(self, timed: Callable[[int], float]) -> float:
        """Return seconds of one run; infinite where no time was left to find out.

        Args:
            timed: Does so many runs and returns their seconds; the first call may take longer.
        """
        if self._spent_s >= self._limit_s:
            return math.inf

        def spent(runs: int) -> float:
            took = timed(runs)
            self._spent_s += took
            return took

        spent(1)  # loads kernels, records graphs
        one = spent(1)
        runs, rounds, least = self._runs, self._rounds, math.inf
        if one * runs > _ROUND_S:
            if one > _CLEARLY * self._best_s:
                return one
            runs = max(1, int(_ROUND_S / one))
            rounds, least = (rounds if runs > 1 else 1), one
        least = min(least, *(spent(runs) / runs for _ in range(rounds)))
        self._best_s = min(self._best_s, least)
        return least
