"""Warm start: the first points of a region are the best points of finished regions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution

from spearmint.choosers.encoding import dimension, from_float, to_float
from spearmint.gp.numerics import Array
from spearmint.gp.space import Space
from spearmint.model import Experiment, Trial, TrialState
from spearmint.store.distributions import distributions, to_flat, tree_of

_ALL_RUNGS = 2**31  # more than a trial can pass before it is complete


def warm_points(
    experiment: Experiment, finished: Sequence[Sequence[Trial]], size: int
) -> list[dict[str, Any]]:
    """Return at most ``size`` points to try first, by element name; best in all regions first.

    Args:
        experiment: The search that starts.
        finished: Trials of each finished search with the same variables.
        size: Number of points.
    """
    from spearmint.acquisition.portfolio import portfolio

    everything = distributions(experiment.variables).items()
    searched = {name: found for name, found in everything if not found.single()}
    if not searched:
        return []
    tree = tree_of(experiment.variables, experiment.linear)
    space = tree.space(searched) if tree else Space(tuple(dimension(d) for d in searched.values()))
    problems = [_observations(experiment, trials, searched, space) for trials in finished]
    points = [
        {
            name: from_float(found, value)
            for (name, found), value in zip(searched.items(), space.values(point), strict=True)
        }
        for point in portfolio(space, problems, size)
    ]
    if tree is None:
        return points
    return [tree.searched_at(point) for point in points if tree.is_inside(point)]


def _observations(
    experiment: Experiment,
    trials: Sequence[Trial],
    searched: Mapping[str, BaseDistribution],
    space: Space,
) -> tuple[Array, Array]:
    """Return points ``(n, D)`` and ranks to minimise ``(n,)`` of complete and paused trials.

    Infeasible trials follow the feasible ones, those with the smallest excess first. Paused trials
    follow the complete ones, those of the highest rung first.
    """
    sign = -1.0 if experiment.maximize else 1.0
    rows: list[list[float | None]] = []
    values: list[tuple[float, int, float]] = []
    for trial in trials:
        passed = len(trial.rungs) if trial.state is TrialState.PAUSED else _ALL_RUNGS
        value = trial.rungs[-1] if trial.state is TrialState.PAUSED else trial.value or 0.0
        if trial.state in (TrialState.COMPLETE, TrialState.PAUSED) and math.isfinite(value):
            flat = to_flat(experiment.variables, trial.params)
            rows.append(
                [
                    to_float(d, flat[name]) if name in flat else np.nan
                    for name, d in searched.items()
                ]
            )
            excess = sum(trial.excess.values())
            values.append((excess, -passed, sign * value if excess == 0.0 else 0.0))
    points = np.array(rows, dtype=np.float64).reshape(-1, len(searched))
    order = {value: rank for rank, value in enumerate(sorted(set(values)))}
    inactive = np.isnan(points)
    points = np.where(inactive, space.centre, space.coordinates(points))
    return points, np.array([float(order[value]) for value in values])
