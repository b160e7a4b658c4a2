"""Real tasks of the search benchmark: losses of cross-validations on data of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from search_problems import Params, Problem

_TRIALS, _FOLDS, _DIGITS = 50, 3, 400
Model = Any


@cache
def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised columns and targets of a dataset; 400 rows of the digits."""
    from sklearn import datasets

    rows, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
    if name == "digits":
        some = np.random.default_rng(0).permutation(len(rows))[:_DIGITS]
        rows, targets = rows[some], targets[some]
    if name == "diabetes":
        targets = (targets - targets.mean()) / targets.std()
    return (rows - rows.mean(axis=0)) / np.maximum(rows.std(axis=0), 1e-9), targets


def validated(name: str, loss: str, model: Callable[[Params], Model]) -> Callable[[int], Any]:
    """Return the function of a seed that returns the function of parameters."""

    def instance(seed: int) -> Callable[[Params], float]:
        def function(params: Params) -> float:
            from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score

            x, y = data(name)
            kind = KFold if name == "diabetes" else StratifiedKFold
            folds = kind(_FOLDS, shuffle=True, random_state=seed)
            scores = cross_val_score(model(params), x, y, cv=folds, scoring=loss, error_score=-10.0)
            value = -float(scores.mean())
            # A log loss of certain, wrong answers is large: all values above 10 are equally bad.
            return 1.0 + value if loss == "accuracy" else min(value, 10.0)

        return function

    return instance


def log_scale(low: float, high: float) -> BaseDistribution:
    """Return a float on a logarithmic scale."""
    return FloatDistribution(low, high, log=True)


def one_of(*choices: Any) -> BaseDistribution:
    """Return a category."""
    return CategoricalDistribution(choices)


_Instance = Callable[[int], Callable[[Params], float]]


def task(
    label: str, instance: _Instance, space: dict[str, BaseDistribution], group: str = "tasks"
) -> Problem:
    """Return the problem of a task: 50 trials, and no method is told that there is no noise."""
    return Problem(
        label=label,
        space=space,
        instance=instance,
        minimum=0.0,
        trials=_TRIALS,
        exact=False,
        group=group,
    )
