"""Recommend a trial of a noisy study: the lowest expected value, not the luckiest observation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from optuna.trial import TrialState

from spearmint.choosers.history import common_space, history, some_trials_of, trials_of
from spearmint.choosers.selection import sign_of

if TYPE_CHECKING:
    from optuna.study import Study

    from spearmint.choosers.tree import Tree
    from spearmint.gp.numerics import Array

# Minimum number of different values for a model, and if a repeated point shows that there is noise:
# error rates of few examples have few values.
_FEWEST, _FEWEST_REPEATED = 8, 3
# Maximum number of observations in the model.
_MOST = 500
# Below this noise, in standard deviations of the (warped) values, the best value is the best trial.
_LEAST_NOISE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What the model expects of a trial.

    Attributes:
        number: Number of the trial in the study, from 0.
        expected: Expected value without noise.
        sd: Standard deviation of ``expected``.
        noise_sd: Standard deviation of the noise of one trial at its point.
        trials: Number of complete trials at its point.
        mean: Mean of their values.
    """

    number: int
    expected: float
    sd: float
    noise_sd: float
    trials: int = 1
    mean: float = math.nan


def recommend(
    study: Study, *, seed: int = 0, tree: Tree | None = None
) -> tuple[Estimate, Estimate] | None:
    """Return the estimates of the recommended trial, and of the one with the best value.

    Recommended is the complete trial with the best expected value (Frazier 2018, arXiv:1807.02811,
    section 4.2). None if fewer than eight values differ (three, if a repeated point gave another
    value), if the model finds no noise, or if a point that was repeated always gave the same value:
    what looks like noise is a rough objective. The same study and seed give the same answer.
    ``tree`` has the parameters if some are conditional.
    """
    rng = np.random.default_rng(seed)
    some = some_trials_of(study, -1, rng)
    trials = some if some is not None else trials_of(study, -1)
    complete = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    space = common_space(complete) if tree is None else tree.searched
    if not space:
        return None
    past = history(study, complete, space, constrained=True, tree=tree)
    exact = repetitions(past.points, past.y)
    is_noisy = not all(exact)
    if exact and not is_noisy:
        return None
    if len(np.unique(past.y)) < (_FEWEST_REPEATED if is_noisy else _FEWEST):
        return None
    from spearmint.gp.estimates import estimates  # imports scipy
    from spearmint.gp.fit import subset

    kept = subset(past.y, _MOST, rng) if len(past.y) > _MOST else np.arange(len(past.y))
    y = past.y[kept]
    found = estimates(past.space, past.points[kept], y, rng)
    if found.noise_share < _LEAST_NOISE:
        return None
    sign = sign_of(study)

    def estimate(i: int) -> Estimate:
        same = past.y[np.all(past.points == past.points[kept[i]], axis=1)]
        return Estimate(
            number=past.trials[kept[i]].number,
            expected=sign * float(found.mean[i]),
            sd=float(found.sd[i]),
            noise_sd=float(found.noise_sd[i]),
            trials=len(same),
            mean=sign * float(same.mean()),
        )

    return estimate(int(np.argmin(found.mean))), estimate(int(np.argmin(y)))


def repetitions(points: Array, y: Array) -> list[bool]:
    """Return for each row of ``points`` that equals an earlier one, whether the value is equal."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    again = np.setdiff1d(np.arange(len(points)), first)
    return [bool(y[i] == y[first[inverse.ravel()[i]]]) for i in again]
