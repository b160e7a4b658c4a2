"""Which points of a study a noisy search can repeat: those of spaces with few points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import TrialState

from spearmint.choosers.history import History
from spearmint.choosers.recommendation import repetitions
from spearmint.choosers.rungs import rungs_of
from spearmint.gp.numerics import Array
from spearmint.gp.space import distance

if TYPE_CHECKING:
    from spearmint.acquisition.replicates import Replicates

# Maximum number of points of the space. In larger ones most points have neighbours, which tell as
# much as repetitions; measured were 40 to 90 points, and continuous spaces, where it did not pay.
_MOST_POINTS = 500
# Minimum number of trials: a model of fewer often sees noise where there is none.
_LEAST_TRIALS = 16
# Maximum number of trials: above it, the model does not see all of them.
_MOST_TRIALS = 1000
# After this many repetitions that all gave the same value, the values are not noisy.
_EXACT = 2
_SAME = 1e-7


def replicates_of(
    past: History, note: Callable[[str], None], mark: Callable[[], None]
) -> Replicates | None:
    """Return the points that a trial can repeat; None if none can.

    They are valid and complete. Values at rungs are estimates, which no trial can repeat.

    Args:
        past: The trials.
        note: Receives a message for the user at the first repetition.
        mark: Called at each repetition.
    """
    from spearmint.acquisition.replicates import Replicates  # imports scipy

    is_small = past.space.n_points <= _MOST_POINTS
    if not is_small or not _LEAST_TRIALS <= len(past.points) <= _MOST_TRIALS:
        return None
    if any(rungs_of(t) is not None for t in past.trials):
        return None
    repeated = repetitions(past.points, past.y)
    if len(repeated) >= _EXACT and all(repeated):
        return None
    tried = _repeatable(past)
    if not len(tried):
        return None

    running = distance(past.pending, tried) <= _SAME
    is_known = [bool(repeated) or bool(running.any())]

    def marked() -> None:
        if not is_known[0]:
            note(
                "The values are noisy: from now on, some trials repeat good points to compare them."
            )
            is_known[0] = True
        mark()

    return Replicates(tried, marked)


def _repeatable(past: History) -> Array:
    """Return the points of complete trials that are valid now, each once."""
    is_complete = [trial.state is TrialState.COMPLETE for trial in past.trials]
    points = np.unique(past.points[np.array(is_complete, dtype=bool)], axis=0)
    if not len(points):
        return points
    is_valid = np.abs(points - past.space.snap(points)).max(axis=1) <= _SAME
    return np.asarray(points[is_valid & past.space.meets(points)])
