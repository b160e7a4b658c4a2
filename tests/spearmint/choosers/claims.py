"""Problems for the claims about choosers; benchmarks/chooser_claims.py uses them too."""

from __future__ import annotations

import math

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import BaseSampler
from optuna.trial import create_trial

X: dict[str, BaseDistribution] = {
    "x0": FloatDistribution(0.0, 1.0),
    "x1": FloatDistribution(0.0, 1.0),
}
LEARNING = {"lr": FloatDistribution(1e-6, 1.0), "momentum": FloatDistribution(0.0, 1.0)}

ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
SCALE = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
CENTRE = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)


def branin(x0: float, x1: float) -> float:
    """Three equal minima, 0.3979, at x0 = 0.12, 0.54 and 0.96."""
    a, b = 15.0 * x0 - 5.0, 15.0 * x1
    bowl = (b - 5.1 / (4.0 * math.pi**2) * a * a + 5.0 / math.pi * a - 6.0) ** 2
    return bowl + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0


def lowest_branin(chooser: BaseSampler, trials: int) -> float:
    """Return the lowest value of all trials."""
    study = optuna.create_study(sampler=chooser)
    for _ in range(trials):
        asked = study.ask(X)
        study.tell(asked, branin(**asked.params))
    return study.best_value


def seconds_to_solve(chooser: BaseSampler) -> float:
    """Return the total seconds of trials until Branin is below 0.42; a trial takes 1 to 100 s."""
    study, total = optuna.create_study(sampler=chooser), 0.0
    for _ in range(50):
        asked = study.ask(X)
        seconds = 100.0 ** asked.params["x0"]
        asked.set_user_attr("seconds", seconds)
        value = branin(**asked.params)
        study.tell(asked, value)
        total += seconds
        if value < 0.42:
            return total
    return math.inf


def hartmann_in_a_ball(x: np.ndarray) -> float:
    """Return Hartmann-6: minimum -3.3224, 8 % of the cube feasible (Letham et al. 2019)."""
    value = float(-ALPHA @ np.exp(-np.sum(SCALE * (x - CENTRE) ** 2, axis=1)))
    return value if x @ x <= 1.0 else math.inf


def regret_in_a_ball(chooser: BaseSampler) -> float:
    """Return the difference between the best of 50 trials and the minimum."""
    space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(6)}
    study, best = optuna.create_study(sampler=chooser), math.inf
    for _ in range(50):
        asked = study.ask(space)
        value = hartmann_in_a_ball(np.array(list(asked.params.values())))
        study.tell(asked, value)
        best = min(best, value)
    return best + 3.32237


def regret_in_a_quarter(chooser: BaseSampler, trials: int) -> float:
    """Return the best value minus the minimum, which is on the edge of a quarter disc."""
    study, best = optuna.create_study(sampler=chooser), math.inf
    for _ in range(trials):
        asked = study.ask(X)
        a, b = asked.params["x0"], asked.params["x1"]
        value = -(a + 2.0 * b) if a * a + b * b <= 0.25 else math.inf
        study.tell(asked, value)
        best = min(best, value)
    return best + math.sqrt(5.0) / 2.0


def feasible_after_first(
    chooser: BaseSampler, trials: int, *known: tuple[float, float]
) -> list[bool]:
    """Return, for each trial after the first feasible trial, whether it is feasible.

    A disc with 2 % of the area of the square is feasible.

    Args:
        chooser: The chooser under test; it starts with four infeasible trials.
        trials: Number of proposals.
        known: Points of additional feasible trials at the start.
    """
    study = optuna.create_study(sampler=chooser)
    for x0, x1 in ((0.1, 0.5), (0.3, 0.5), (0.5, 0.5), (0.7, 0.5), *known):
        value = x0 + x1 if (x0, x1) in known else math.inf
        study.add_trial(create_trial(params={"x0": x0, "x1": x1}, distributions=X, value=value))
    found = [True] * len(known)
    for _ in range(trials):
        asked = study.ask(X)
        x = np.array(list(asked.params.values()))
        found.append(bool(np.sum((x - [0.8, 0.2]) ** 2) < 0.02 / math.pi))
        study.tell(asked, float(x.sum()) if found[-1] else math.inf)
    return found[found.index(True) + 1 :] if any(found) else []


def best_on_wrong_scale(chooser: BaseSampler) -> float:
    """Return the lowest loss. The optimum is lr = 3e-3, at 1/300 of its range from one end."""
    study = optuna.create_study(sampler=chooser)
    for _ in range(20):
        trial = study.ask(dict(LEARNING))
        lr, momentum = trial.params["lr"], trial.params["momentum"]
        study.tell(trial, math.log10(lr / 3e-3) ** 2 + (momentum - 0.6) ** 2)
    return study.best_value


def best_on_jumps(chooser: BaseSampler) -> float:
    """Return the lowest value of a step function with a category."""
    space: dict[str, BaseDistribution] = {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(3)}
    space["c"] = CategoricalDistribution(list("abcd"))
    study = optuna.create_study(sampler=chooser)
    for _ in range(40):
        trial = study.ask(space)
        steps = [np.floor(8 * trial.params[f"x{i}"]) - 3 * i for i in range(3)]
        study.tell(trial, float(np.abs(steps).sum()) + 3 * (trial.params["c"] != "b"))
    return study.best_value
