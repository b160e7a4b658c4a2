"""GPConstrainedEIChooser: expected improvement times the probability of feasibility."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from optuna.distributions import BaseDistribution

from spearmint.choosers.gp_ei import GPEIOptChooser
from spearmint.choosers.history import History, history

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

    from spearmint.acquisition.maximize import Acquisition
    from spearmint.gp.numerics import Array
    from spearmint.gp.settings import Settings

# Trials whose label the model of the constraint sees at most, half of either kind.
_MOST_LABELS = 1000
# Feasible trials that the guesses of the values of infeasible ones are made from at most, and
# guesses made at once: memory grows with the square.
_MOST_VALUES, _BLOCK = 1000, 256


class GPConstrainedEIChooser(GPEIOptChooser):
    """Choose where improvement is expected and a constraint, learned from trials, likely holds.

    A trial broke the constraint if its value is infinite, if it is broken, if its user attribute
    ``infeasible`` is true, or if one of its Optuna constraints is above 0. Its value is not used.
    Until a trial is feasible the points are those of a Sobol sequence: they find a small region
    sooner than the points farthest from all others, which crowd at the bounds.
    The arguments are those of :class:`spearmint.choosers.GPEIOptChooser`.
    """

    def _history(
        self, study: Study, trials: Sequence[FrozenTrial], space: dict[str, BaseDistribution]
    ) -> History:
        """Return the feasible trials with their values, the others without."""
        return history(study, trials, space, constrained=True)

    def _factor(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> Acquisition | None:
        """Return the log probability of feasibility, None while nothing was infeasible."""
        from spearmint.acquisition.factors import LogFeasibility
        from spearmint.gp.fit import fit, some
        from spearmint.gp.numerics import one_blas_thread

        if not len(past.infeasible):
            return None
        kinds = [
            kind[some(len(kind), _MOST_LABELS // 2, rng)] for kind in (past.points, past.infeasible)
        ]
        points, none = np.concatenate(kinds), past.pending[:0]
        labels = np.repeat([1.0, -1.0], [len(kind) for kind in kinds])
        settings = replace(settings, noiseless=False, warp=False, input_warp=False)
        with one_blas_thread():
            posterior = fit(past.space, points, labels, none, settings, rng)
        return LogFeasibility(posterior, zero=-float(labels.mean() / labels.std()))

    def _objective(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> tuple[Array, Array]:
        """Return points and values, of the infeasible points predicted mean plus deviation.

        So the objective's model expects no improvement there, and is hardly bent where it would
        have been low. The values stay within those observed. Source: Forrester, Sobester and Keane
        2006 (Proc. R. Soc. A 462:935).
        """
        from spearmint.gp.fit import fit, subset
        from spearmint.gp.numerics import one_blas_thread
        from spearmint.gp.output_warp import standardise

        points, y, none = past.points, past.y, past.pending[:0]
        if not len(past.infeasible):
            return points, y
        if len(y) > _MOST_VALUES:
            kept = subset(y, _MOST_VALUES, rng)
            points, y = points[kept], y[kept]
        n_blocks = 1 + len(past.infeasible) // _BLOCK
        with one_blas_thread():
            posterior = fit(past.space, points, y, none, replace(settings, warp=False), rng)
            blocks = map(posterior.predict, np.array_split(past.infeasible, n_blocks))
            guess = np.concatenate([(m[:, :, 0] + np.sqrt(v)).mean(axis=0) for m, v in blocks])
        z = standardise(y)
        # Not y.mean() + y.std() * guess, which may overflow.
        share = np.clip((guess - z.min()) / max(float(np.ptp(z)), 1e-300), 0.0, 1.0)
        guess = y.min() * (1.0 - share) + y.max() * share
        return past.tried, np.concatenate((past.y, guess))
