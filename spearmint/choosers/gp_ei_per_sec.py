"""GPEIperSecChooser: expected improvement per second."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import TrialState

from spearmint.choosers.gp_ei import GPEIOptChooser

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from spearmint.acquisition.maximize import Acquisition
    from spearmint.choosers.history import History
    from spearmint.gp.settings import Settings

SECONDS = "seconds"
# Shorter durations count as this long: they are only the overhead of starting a trial.
_SHORTEST_S = 1e-3
# Maximum number of trials in the model of durations: its memory grows with the square.
_MOST_DURATIONS = 1000


class GPEIperSecChooser(GPEIOptChooser):
    """Choose the point where a Gaussian process expects most improvement per second of a trial.

    A second Gaussian process models the logarithm of the durations of complete trials. The
    arguments are those of :class:`spearmint.choosers.GPEIOptChooser`.
    """

    looks_elsewhere = False
    repeats_points = False

    def _factor(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> Acquisition | None:
        """Return the log of the expected inverse duration; None if too few durations are known."""
        from spearmint.acquisition.factors import LogInverseCost
        from spearmint.gp.fit import fit, some
        from spearmint.gp.numerics import one_blas_thread

        durations = [duration_s(trial) for trial in past.trials]
        known = [i for i, seconds in enumerate(durations) if seconds is not None]
        known = [known[i] for i in some(len(known), _MOST_DURATIONS, rng)]
        log_s = np.log([max(durations[i] or 0.0, _SHORTEST_S) for i in known])
        if len(known) < 2 or not log_s.std() > 0.0:
            return None
        settings = replace(settings, noiseless=False, warp=False, input_warp=False)
        with one_blas_thread():
            posterior = fit(past.space, past.points[known], log_s, past.points[:0], settings, rng)
        return LogInverseCost(posterior, unit=float(log_s.std()))


def duration_s(trial: FrozenTrial) -> float | None:
    """Return the duration of a complete trial in seconds, from its attribute or its timestamps.

    Return None if both are missing. A trial that was added, not run, has equal timestamps.
    """
    if trial.state != TrialState.COMPLETE:
        return None
    seconds = trial.user_attrs.get(SECONDS)
    if seconds is None and trial.duration:
        seconds = trial.duration.total_seconds()
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0.0:
        return None
    return float(seconds)
