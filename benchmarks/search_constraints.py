"""Compare the search with constraints with Optuna's: best feasible value after a number of trials.

    python benchmarks/search_constraints.py --seeds 5 --methods GPEIOptChooser TPESampler

Optuna's samplers get the same values, by ``trial.set_constraint``. Needs scikit-learn, and PyTorch
for GPSampler.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler

from spearmint.choosers import GPEIOptChooser

Params = Mapping[str, Any]
Measured = tuple[float, Mapping[str, float]]
"""The objective, and how far each constraint is above its limit."""


@dataclass(frozen=True)
class Problem:
    """A problem: its space, its function, and the number of trials."""

    space: Mapping[str, BaseDistribution]
    function: Callable[[Params], Measured]
    trials: int


def gramacy(params: Params) -> Measured:
    """Gramacy et al. 2016 (Technometrics 58:1), eq. 1: the minimum is 0.5998."""
    x, y = params["x"], params["y"]
    wave = 1.5 - x - 2.0 * y - 0.5 * math.sin(2.0 * math.pi * (x * x - 2.0 * y))
    return x + y, {"wave": wave, "disc": x * x + y * y - 1.5}


def vessel(params: Params) -> Measured:
    """Design of a pressure vessel with real thicknesses: Coello 2002 (CMAME 191:1245)."""
    shell, head, radius, length = (params[name] for name in ("shell", "head", "radius", "length"))
    cost = (
        0.6224 * shell * radius * length
        + 1.7781 * head * radius**2
        + 3.1661 * shell**2 * length
        + 19.84 * shell**2 * radius
    )
    volume = math.pi * radius**2 * length + 4.0 / 3.0 * math.pi * radius**3
    return cost, {
        "shell": 0.0193 * radius - shell,
        "head": 0.00954 * radius - head,
        "volume": 1_296_000.0 - volume,
    }


def forest(params: Params) -> Measured:
    """Error of a random forest on handwritten digits: at most 4,000 nodes, worst recall 0.85."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import recall_score
    from sklearn.model_selection import train_test_split

    x, y = load_digits(return_X_y=True)
    train, test, train_y, test_y = train_test_split(x, y, test_size=0.5, random_state=0)
    model = RandomForestClassifier(**params, random_state=0).fit(train, train_y)
    recalls = recall_score(test_y, model.predict(test), average=None)
    nodes = sum(tree.tree_.node_count for tree in model.estimators_)
    error = 1.0 - model.score(test, test_y)
    return error, {"nodes": nodes - 4000.0, "recall": 0.85 - float(min(recalls))}


PROBLEMS = {
    "gramacy": Problem(
        {name: FloatDistribution(0.0, 1.0) for name in ("x", "y")}, gramacy, trials=30
    ),
    "vessel": Problem(
        {
            "shell": FloatDistribution(0.0625, 6.1875),
            "head": FloatDistribution(0.0625, 6.1875),
            "radius": FloatDistribution(10.0, 200.0),
            "length": FloatDistribution(10.0, 200.0),
        },
        vessel,
        trials=40,
    ),
    "forest": Problem(
        {
            "n_estimators": IntDistribution(2, 200, log=True),
            "max_depth": IntDistribution(2, 20),
            "max_features": FloatDistribution(0.02, 1.0, log=True),
            "min_samples_leaf": IntDistribution(1, 20, log=True),
        },
        forest,
        trials=30,
    ),
}
METHODS: dict[str, Callable[[int, bool], BaseSampler]] = {
    "GPEIOptChooser": lambda seed, exact: GPEIOptChooser(seed=seed, noiseless=exact),
    "GPSampler": lambda seed, exact: GPSampler(seed=seed, deterministic_objective=exact),
    "TPESampler": lambda seed, exact: TPESampler(seed=seed),
    "RandomSampler": lambda seed, exact: RandomSampler(seed=seed),
}


def search(problem: Problem, sampler: BaseSampler) -> tuple[float, float]:
    """Return the best feasible value, infinite without any, and the seconds of a proposal."""
    study = optuna.create_study(sampler=sampler)
    best, seconds = math.inf, 0.0
    for _ in range(problem.trials):
        start = time.process_time()
        trial = study.ask(dict(problem.space))
        seconds += time.process_time() - start
        value, gaps = problem.function(trial.params)
        for name, gap in gaps.items():
            trial.set_constraint(name, gap)
        study.tell(trial, value)
        if all(gap <= 0.0 for gap in gaps.values()):
            best = min(best, value)
    return best, seconds / problem.trials


def main() -> None:
    """Print a line for each problem and method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.problems:
        for method in given.methods:
            make = partial(METHODS[method], exact=name != "forest")
            runs = [search(PROBLEMS[name], make(seed)) for seed in seeds]
            found = sorted(best for best, _ in runs)
            none = sum(map(math.isinf, found))
            print(
                f"{name} {method}: median {median(found):.6g}, best {found[0]:.6g}, "
                f"worst {found[-1]:.6g}, {none} of {len(found)} without a feasible trial, "
                f"{np.mean([seconds for _, seconds in runs]):.3f} CPU s a proposal",
                flush=True,
            )


if __name__ == "__main__":
    main()
