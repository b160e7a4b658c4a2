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

# Maximum number of trials in the model of the constraint, and half of it for either label.
_MOST_LABELS = 1000
# Maximum number of feasible trials from which to predict values of infeasible trials, and number of
# predictions in a block: memory grows with the square.
_MOST_VALUES, _BLOCK = 1000, 256


class GPConstrainedEIChooser(GPEIOptChooser):
    """Choose the point with the largest expected improvement times probability of feasibility.

    The constraint is learned from trials. A trial is infeasible if its value is infinite, if it
    failed (broken), if its user attribute ``infeasible`` is true, or if one of its Optuna
    constraints is above 0. Its value is not used. Until a trial is feasible, the points are those
    of a Sobol sequence. They find a small feasible region sooner than the points farthest from all
    others, which concentrate at the bounds. The arguments are those of
    :class:`spearmint.choosers.GPEIOptChooser`.
    """

    models_limits = False
    looks_elsewhere = False
    repeats_points = False
    several_objectives = False

    def _history(
        self, study: Study, trials: Sequence[FrozenTrial], space: dict[str, BaseDistribution]
    ) -> History:
        """Return feasible trials with values, and infeasible trials without."""
        return history(study, trials, space, constrained=True, tree=self.tree)

    def _factor(
        self, past: History, settings: Settings, rng: np.random.Generator
    ) -> Acquisition | None:
        """Return the log probability of feasibility; None if no trial was infeasible."""
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
        """Return points and values; infeasible points get predicted mean plus standard deviation.

        With these values the model of the objective expects no improvement at infeasible points,
        and changes little where it predicts low values. The values stay within the observed range.
        Source: Forrester, Sobester and Keane 2006 (Proc. R. Soc. A 462:935).
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
        # Not y.mean() + y.std() * guess, which can overflow.
        share = np.clip((guess - z.min()) / max(float(np.ptp(z)), 1e-300), 0.0, 1.0)
        guess = y.min() * (1.0 - share) + y.max() * share
        return past.tried, np.concatenate((past.y, guess))
