"""Values of trials that pause at rungs: one value for each, as if all had reached the same rung."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from spearmint.choosers.lines import fitted_line
from spearmint.fidelity import lowest_trusted

RUNGS = "spearmint:rungs"
"""Attribute of a trial: ``values`` by rung, ``seconds`` of all jobs so far, those of each of the
``parts``, ``paused``, and its ``goal`` if it continues to this number of rungs, whatever its values
are. A value is None where it is unknown."""

_FEWEST = 3  # minimum number of trials that reached a rung to model values of this rung


def rungs_of(trial: FrozenTrial) -> Mapping[str, Any] | None:
    """Return what is stored about the rungs of a trial; None if it passed none."""
    found: Mapping[str, Any] | None = trial.user_attrs.get(RUNGS)
    return found


def values_at_rungs(stored: Mapping[str, Any]) -> list[float]:
    """Return the values in what is stored about rungs; NaN where one is unknown."""
    return [math.nan if value is None else float(value) for value in stored["values"]]


def is_paused(trial: FrozenTrial) -> bool:
    """Return whether a trial waits at a rung. Optuna has no such state: it is running there."""
    found = rungs_of(trial)
    return trial.state is TrialState.RUNNING and found is not None and bool(found["paused"])


class RungValues:
    """Estimates of the values at the highest rung that at least three trials reached.

    The value of a trial that stopped at a lower rung is moved up from rung to rung by a line that
    is fitted to the trials with both values: an autoregressive model of the fidelities (Kennedy and
    O'Hagan 2000) with a constant discrepancy. So the model of the objective has one value for each
    trial, and the values of all are on one scale.

    Args:
        trials: All trials.
        sign: -1 if larger values are better, else 1.
    """

    def __init__(self, trials: Sequence[FrozenTrial], sign: float = 1.0) -> None:
        self._curves = [values for trial in trials if (values := _values(trial))]
        complete = [[sign * v for v in _values(trial)] for trial in trials if _is_whole(trial)]
        n_rungs = max(map(len, complete), default=1)
        self._lowest = lowest_trusted(complete, n_rungs)
        highest = max(map(len, self._curves), default=0)
        enough = [n for n in range(1, highest + 1) if self._known(n - 1) >= _FEWEST]
        self._n = max(enough, default=min(highest, 1))
        self._lines = [self._line(rung) for rung in range(self._n - 1)]

    def of(self, trial: FrozenTrial) -> float | None:
        """Return the estimate for a trial; None if it passed no rung."""
        values = _values(trial)
        if not values:
            return None
        known = [i for i, value in enumerate(values) if not math.isnan(value) and i >= self._lowest]
        if not known:
            return None
        rung = max((i for i in known if i < self._n), default=known[0])
        value = values[rung]
        for start, slope in self._lines[rung:]:
            value = start + slope * value
        return value

    def _known(self, rung: int) -> int:
        """Return the number of trials whose value at ``rung`` is known."""
        return sum(len(v) > rung and not math.isnan(v[rung]) for v in self._curves)

    def _line(self, rung: int) -> tuple[float, float]:
        """Return the line from the values at ``rung`` to those at the next one."""
        both = [v for v in self._curves if len(v) > rung + 1]
        return fitted_line([(v[rung], v[rung + 1]) for v in both])


def _is_whole(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.COMPLETE and rungs_of(trial) is not None


def _values(trial: FrozenTrial) -> list[float]:
    """Return the values of a trial by rung, that of a complete trial last; NaN if unknown."""
    found = rungs_of(trial)
    lower = [] if found is None else values_at_rungs(found)
    if trial.state is TrialState.COMPLETE and found is not None:
        return [*lower, trial.values[0]]
    return [] if trial.state is TrialState.FAIL else lower
