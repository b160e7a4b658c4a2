"""What a trial that was ended early would have come to, judged by those that went on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna.trial import FrozenTrial, TrialState

DIVERGED = "diverged"
"""Attribute of a trial: step of its last report that was not finite, which is not stored."""

_FEWEST, _MOST = 3, 100  # finished trials that a line is drawn through


class Finals:
    """Estimates of final values, from a line through the finished trials at each step.

    The line final = a + b value(step) is that of Theil (1950) and Sen (1968), the median of all
    slopes between two trials, with b in [0, 1]: curves come together as they go on.
    """

    def __init__(self, trials: Sequence[FrozenTrial]) -> None:
        self._finished = [
            (trial.intermediate_values, trial.value)
            for trial in trials
            if trial.state == TrialState.COMPLETE
            and trial.value is not None
            and np.isfinite(trial.value)
            and trial.intermediate_values
        ]
        self._lines: dict[int, tuple[float, float]] = {}

    def of(self, trial: FrozenTrial) -> float:
        """Return the estimate for a pruned trial, infinity if it diverged or reported nothing.

        It is the last report itself while fewer than 3 finished trials reported that step.
        """
        step = max(trial.intermediate_values, default=-1)
        if step < 0 or trial.user_attrs.get(DIVERGED, -1) > step:
            return np.inf
        last = trial.intermediate_values[step]
        if not np.isfinite(last):
            return np.inf
        if step not in self._lines:
            self._lines[step] = self._line(step)
        start, slope = self._lines[step]
        return float(start + slope * last)

    def _line(self, step: int) -> tuple[float, float]:
        pairs = [
            (at[step], value) for at, value in self._finished if np.isfinite(at.get(step, np.nan))
        ]
        if len(pairs) < _FEWEST:
            return 0.0, 1.0
        x, y = np.array(pairs[-_MOST:]).T
        first, second = np.triu_indices(len(x), 1)
        run, rise = x[second] - x[first], y[second] - y[first]
        apart = run != 0
        slope = float(np.clip(np.median(rise[apart] / run[apart]), 0, 1)) if apart.any() else 1.0
        return float(np.median(y - slope * x)), slope
