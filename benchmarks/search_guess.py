"""Compare searches with right, rough and wrong guesses of the user, and without.

    python benchmarks/search_guess.py --seeds 8

The rough guess is a tenth of the range away from the best known point in each dimension, the wrong
one as far away as the bounds allow. Regret is to the best known value. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.encoding import dimension, to_native

Params = Mapping[str, Any]
GUESSES = ("none", "right", "rough", "wrong")
_SPREAD = 0.2


@dataclass(frozen=True)
class Problem:
    """A problem, and the coordinates of its best known point in [0, 1]."""

    space: Mapping[str, FloatDistribution]
    function: Callable[[Params], float]
    best: Sequence[float]


def hartmann(params: Params) -> float:
    """Hartmann's function in 6 dimensions; the minimum is -3.32237."""
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8]]
    a.append([17, 8, 0.05, 10, 0.1, 14])
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    p += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    x = np.array([params[f"x{i}"] for i in range(6)])
    inside = np.sum(np.array(a) * (x - 1e-4 * np.array(p)) ** 2, axis=1)
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-inside))


@cache
def _data() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    return x / x.std(axis=0), (y - y.mean()) / y.std()


def regression(params: Params) -> float:
    """Cross-validated error of support vector regression on the diabetes data."""
    from sklearn.model_selection import cross_val_predict
    from sklearn.svm import SVR

    x, y = _data()
    model = SVR(**params, max_iter=20_000)
    return float(np.mean((cross_val_predict(model, x, y, cv=3) - y) ** 2))


PROBLEMS = {
    "hartmann": Problem(
        {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(6)},
        hartmann,
        (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573),
    ),
    "regression": Problem(
        {
            "C": FloatDistribution(1e-3, 1e3, log=True),
            "gamma": FloatDistribution(1e-6, 10.0, log=True),
            "epsilon": FloatDistribution(1e-4, 2.0, log=True),
        },
        regression,
        (0.4275010799504936, 0.6358557984690579, 0.7489468536651596),  # of three searches
    ),
}


def guess_of(problem: Problem, kind: str, seed: int) -> list[float]:
    """Return the coordinates of a guess."""
    best = np.array(problem.best)
    if kind == "wrong":
        return [float(x) for x in np.where(best < 0.5, 1.0, 0.0)]
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(best))
    away = 0.1 if kind == "rough" else 0.0
    return [float(x) for x in np.clip(best + away * signs, 0.0, 1.0)]


def search(problem: Problem, kind: str, seed: int, trials: int) -> list[float]:
    """Return the best value after each trial."""
    chooser = GPEIOptChooser(seed=seed)
    study = optuna.create_study(sampler=chooser)
    if kind != "none":
        at = zip(problem.space.items(), guess_of(problem, kind, seed), strict=True)
        point = {name: to_native(d, dimension(d), x) for (name, d), x in at}
        chooser.guesses = {name: (value, _SPREAD) for name, value in point.items()}
        study.enqueue_trial(point)
    best, found = math.inf, []
    for _ in range(trials):
        trial = study.ask(dict(problem.space))
        value = problem.function(trial.params)
        study.tell(trial, value)
        best = min(best, value)
        found.append(best)
    return found


def main() -> None:
    """Print a line for each problem and guess."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--guesses", nargs="+", default=GUESSES, choices=GUESSES)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.problems:
        problem = PROBLEMS[name]
        at = zip(problem.space.items(), problem.best, strict=True)
        least = problem.function({k: to_native(d, dimension(d), x) for (k, d), x in at})
        for kind in given.guesses:
            runs = [search(problem, kind, seed, given.trials) for seed in seeds]
            marks = [n for n in (5, 10, 20, 40) if n <= given.trials]
            text = ", ".join(
                f"{median(run[n - 1] - least for run in runs):.2g} "
                f"({max(run[n - 1] - least for run in runs):.2g}) at {n}"
                for n in marks
            )
            print(f"{name} {kind}: {text}", flush=True)


if __name__ == "__main__":
    main()
