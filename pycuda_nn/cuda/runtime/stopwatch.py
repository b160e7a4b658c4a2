"""Time several algorithms for the same work within a time limit."""

from __future__ import annotations

import math
from collections.abc import Callable

_ROUND_S = 0.02  # seconds of a round of runs, enough to resolve 0.5 %
_CLEARLY = 1.05  # times the best: larger than the noise of a round


class Stopwatch:
    """Times algorithms one after another; long runs fewer times, clearly slower ones once."""

    def __init__(self, *, runs: int, rounds: int, limit_s: float) -> None:
        """Start without a best time.

        Args:
            runs, rounds: If runs are short, the result is the shortest of ``rounds`` rounds of
                ``runs`` runs.
            limit_s: After runs of this total time, no further algorithm is timed.
        """
        self._runs, self._rounds, self._limit_s = runs, rounds, limit_s
        self._spent_s, self._best_s = 0.0, math.inf

    def seconds(self, timed: Callable[[int], float]) -> float:
        """Return the seconds of a run; infinite if the time limit is reached.

        Args:
            timed: Runs the given number of times and returns the seconds; the first call can take
                longer.
        """
        if self._spent_s >= self._limit_s:
            return math.inf

        def spent(runs: int) -> float:
            took = timed(runs)
            self._spent_s += took
            return took

        spent(1)  # loads kernels, records graphs
        first = spent(1)
        runs, rounds, least = self._runs, self._rounds, math.inf
        if first * runs > _ROUND_S:
            if first > _CLEARLY * self._best_s:
                return first
            runs = max(1, int(_ROUND_S / first))
            rounds, least = (rounds if runs > 1 else 1), first
        least = min(least, *(spent(runs) / runs for _ in range(rounds)))
        self._best_s = min(self._best_s, least)
        return least
