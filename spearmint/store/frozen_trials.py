"""Convert stored trials of Optuna to :class:`spearmint.model.Trial`."""

from __future__ import annotations

from collections.abc import Sequence

from optuna.trial import FrozenTrial
from optuna.trial import TrialState as OptunaState

from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.distributions import to_params

REASON, TAIL, SECONDS, LOST = "reason", "tail", "seconds", "lost"
"""User attributes of a stored trial, see :class:`spearmint.model.Trial`."""

_MOST_REPORTS = 200  # stored per trial; a longer curve is thinned evenly
STATES = {
    OptunaState.COMPLETE: TrialState.COMPLETE,
    OptunaState.FAIL: TrialState.BROKEN,
    OptunaState.PRUNED: TrialState.PRUNED,
}


def to_trial(experiment: Experiment, frozen: FrozenTrial) -> Trial:
    """Return ``frozen``, which has all parameters of ``experiment``."""
    attrs = frozen.user_attrs
    state = STATES.get(frozen.state, TrialState.RUNNING)
    return Trial(
        id=frozen.number + 1,
        state=state,
        params=to_params(experiment.variables, frozen.params),
        region=experiment.region,
        value=frozen.value if state is TrialState.COMPLETE else None,
        reason=attrs.get(REASON, ""),
        tail=attrs.get(TAIL, ""),
        seconds=attrs.get(SECONDS),
        lost=attrs.get(LOST, 0),
        reports=frozen.intermediate_values,
    )


def thinned(reports: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    """Return at most 200 of ``reports``, evenly spaced, including the last one."""
    every = -(-len(reports) // _MOST_REPORTS) or 1
    return reports[::-1][::every][::-1]
