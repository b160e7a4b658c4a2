"""Convert stored trials of Optuna to :class:`spearmint.model.Trial`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from spearmint.choosers.history import INFEASIBLE
from spearmint.choosers.rungs import is_paused, rungs_of, values_at_rungs
from spearmint.model import Experiment, Trial, TrialState
from spearmint.outputs import Constraint
from spearmint.store.distributions import to_params

REASON, TAIL, SECONDS, LOST, ALONE = "reason", "tail", "seconds", "lost", "alone"
"""User attributes of a stored trial, see :class:`spearmint.model.Trial`."""

CONSTRAINTS, EXCESS = "constraints", "excess"
"""User attributes: values with limits by name, and the total excess of an infeasible trial."""

_MOST_REPORTS = 200  # stored per trial; a longer curve is thinned evenly
STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.FAIL: TrialState.BROKEN,
    OptunaState.PRUNED: TrialState.PRUNED,
}


def to_trial(experiment: Experiment, frozen: FrozenTrial) -> Trial:
    """Return ``frozen``, which has all parameters of ``experiment``."""
    attrs = frozen.user_attrs
    state = state_of(frozen)
    rungs = rungs_of(frozen) or {"values": (), "seconds": 0.0}
    runs = state is TrialState.RUNNING
    values = attrs.get(CONSTRAINTS, {})
    is_complete = state is TrialState.COMPLETE
    goals = experiment.objectives if is_complete and experiment.has_front else ()
    return Trial(
        id=frozen.number + 1,
        state=state,
        params=to_params(experiment.variables, frozen.params),
        region=experiment.region,
        value=frozen.values[0] if is_complete and not experiment.has_front else None,
        reason=attrs.get(REASON, ""),
        out_of_memory=state is TrialState.BROKEN and bool(attrs.get(INFEASIBLE)),
        tail=attrs.get(TAIL, ""),
        seconds=None if runs else attrs.get(SECONDS),
        rungs=tuple(values_at_rungs(rungs)),
        earlier_s=rungs["seconds"],
        goal=rungs.get("goal", 0),
        part_s=tuple(map(float, rungs.get("parts", ()))),
        lost=attrs.get(LOST, 0),
        alone=attrs.get(ALONE, False),
        reports=frozen.intermediate_values,
        objectives={each.name: v for each, v in zip(goals, frozen.values or (), strict=False)},
        losses=tuple(each.loss(v) for each, v in zip(goals, frozen.values or (), strict=False)),
        constraints=values,
        excess=excess(experiment.constraints, values),
    )


def state_of(frozen: FrozenTrial) -> TrialState:
    """Return the state of a stored trial."""
    if is_paused(frozen):
        return TrialState.PAUSED
    return STATES.get(frozen.state, TrialState.RUNNING)


def excess(constraints: Iterable[Constraint], values: Mapping[str, float]) -> dict[str, float]:
    """Return how far ``values`` are outside of their limits, by name; only those outside."""
    known = [each for each in constraints if each.name in values]
    found = {each.name: each.excess(values[each.name]) for each in known}
    return {name: more for name, more in found.items() if more > 0.0}


def user_attributes(
    constraints: Iterable[Constraint], values: Mapping[str, float], seconds: float | None
) -> dict[str, Any]:
    """Return the user attributes of a complete trial."""
    known: dict[str, Any] = {} if seconds is None else {SECONDS: seconds}
    if values:
        known[CONSTRAINTS] = dict(values)
    if more := sum(excess(constraints, values).values()):
        known[EXCESS] = min(more, sys.float_info.max)  # SQL sorts by it
    return known


def gaps(constraints: Iterable[Constraint], values: Mapping[str, float]) -> dict[str, float]:
    """Return the constraints of Optuna's interface: feasible up to 0, by name."""
    known = [each.gaps(values[each.name]) for each in constraints if each.name in values]
    return {name: gap for each in known for name, gap in each.items()}


def thinned(reports: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most 200 of ``reports``, evenly spaced, including the last one."""
    every = -(-len(reports) // _MOST_REPORTS) or 1
    return reports[::-1][::every][::-1]
