"""Compare searches that learn from earlier searches, and the same searches without.

    python benchmarks/search_learn.py --seeds 8

Each seed has other tasks of the family: another shift and scale of a function, or another half of
the rows of data that scikit-learn ships. The earlier searches are searches of 60 trials by Optuna's
TPE. In the misleading families the earlier search has the inverted function, noise, or a
function without relation. ``cma`` is Optuna's CMA-ES, and ``cma+learn`` its warm start
(``source_trials``). Regret is to the best value that any method finds in this task.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.encoding import dimension
from spearmint.choosers.learning import first_points, variables_of
from spearmint.gp.space import Space
from spearmint.transfer import EarlierSearch, EarlierTrial, matched, n_seeds

Params = Mapping[str, Any]
Function = Callable[[Params], float]
METHODS = ("plain", "learn", "cma", "cma+learn")


@dataclass(frozen=True)
class Family:
    """The functions of earlier searches, and the function to search, by seed."""

    space: Mapping[str, BaseDistribution]
    earlier: Callable[[int], list[Function]]
    target: Callable[[int], Function]


def _hartmann(x: Any) -> float:
    a = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8]]
    a.append([17, 8, 0.05, 10, 0.1, 14])
    p = [[1312, 1696, 5569, 124, 8283, 5886], [2329, 4135, 8307, 3736, 1004, 9991]]
    p += [[2348, 1451, 3522, 2883, 3047, 6650], [4047, 8828, 8732, 5743, 1091, 381]]
    inside = np.sum(np.array(a) * (x - 1e-4 * np.array(p)) ** 2, axis=1)
    return -float(np.array([1.0, 1.2, 3.0, 3.2]) @ np.exp(-inside))


def _branin(x: Any) -> float:
    u, v = 15.0 * x[0] - 5.0, 15.0 * x[1]
    wave = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    return float(wave**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(u) + 10)


def moved(function: Callable[[Any], float], seed: int, dims: int, *, sign: float = 1.0) -> Function:
    """Return ``function`` of the unit cube, shifted by up to a tenth, in another unit."""
    rng = np.random.default_rng(seed)
    shift, unit, zero = rng.uniform(-0.1, 0.1, dims), 10 ** rng.uniform(-2, 2), rng.normal() * 100

    def of(params: Params) -> float:
        x = np.array([params[f"x{i}"] for i in range(dims)])
        return sign * unit * function(x + shift) + zero

    return of


def noise(seed: int) -> Function:
    """Return a function that is noise."""
    rng = np.random.default_rng(seed)
    return lambda params: float(rng.standard_normal())


def bowl(seed: int, dims: int) -> Function:
    """Return a quadratic function with its minimum anywhere."""
    centre = np.random.default_rng(seed).random(dims)
    return lambda params: sum((params[f"x{i}"] - c) ** 2 for i, c in enumerate(centre))


def cube(dims: int) -> dict[str, BaseDistribution]:
    """Return the unit cube."""
    return {f"x{i}": FloatDistribution(0.0, 1.0) for i in range(dims)}


@cache
def _diabetes() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    return x / x.std(axis=0), (y - y.mean()) / y.std()


def regression(seed: int) -> Function:
    """Return the error of a support vector regression on half of the diabetes data."""
    x, y = _diabetes()
    rows = np.random.default_rng(seed).permutation(len(y))[: len(y) // 2]

    def of(params: Params) -> float:
        from sklearn.model_selection import cross_val_predict
        from sklearn.svm import SVR

        model = SVR(**params, max_iter=10_000)
        return float(np.mean((cross_val_predict(model, x[rows], y[rows], cv=3) - y[rows]) ** 2))

    return of


SVR_SPACE: dict[str, BaseDistribution] = {
    "C": FloatDistribution(1e-3, 1e3, log=True),
    "gamma": FloatDistribution(1e-6, 10.0, log=True),
    "epsilon": FloatDistribution(1e-4, 2.0, log=True),
}
SVC_SPACE: dict[str, BaseDistribution] = {
    "C": FloatDistribution(1e-3, 1e4, log=True),
    "gamma": FloatDistribution(1e-6, 10.0, log=True),
    "kernel": CategoricalDistribution(("rbf", "poly", "sigmoid")),
    "coef0": FloatDistribution(-1.0, 3.0),
}


@cache
def _classes(name: str) -> tuple[Any, Any]:
    from sklearn import datasets
    from sklearn.preprocessing import scale

    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return scale(x) / math.sqrt(x.shape[1]), y


def classification(name: str, seed: int) -> Function:
    """Return the cross-validated log loss of a support vector machine on at most 300 rows."""
    x, y = _classes(name)
    rows = np.random.default_rng(seed).permutation(len(y))[:300]

    def of(params: Params) -> float:
        from sklearn.model_selection import cross_val_predict
        from sklearn.svm import SVC

        model = SVC(**params, max_iter=5_000)
        scores = cross_val_predict(model, x[rows], y[rows], cv=3, method="decision_function")
        scores = np.stack((-scores, scores), axis=1) if scores.ndim == 1 else scores
        top = scores - scores.max(axis=1, keepdims=True)
        logs = top - np.log(np.exp(top).sum(axis=1, keepdims=True))
        return -float(np.mean(logs[np.arange(len(rows)), y[rows]]))

    return of


FAMILIES = {
    "hartmann": Family(
        cube(6),
        lambda s: [moved(_hartmann, 100 * s + i, 6) for i in (1, 2)],
        lambda s: moved(_hartmann, 100 * s, 6),
    ),
    "branin": Family(
        cube(2),
        lambda s: [moved(_branin, 100 * s + i, 2) for i in (1, 2)],
        lambda s: moved(_branin, 100 * s, 2),
    ),
    "svr": Family(
        SVR_SPACE,
        lambda s: [regression(100 * s + i) for i in (1, 2)],
        lambda s: regression(100 * s),
    ),
    "svc": Family(
        SVC_SPACE,
        lambda s: [classification(n, s) for n in ("wine", "breast_cancer", "iris")],
        lambda s: classification("digits", s),
    ),
    "hartmann-inverted": Family(
        cube(6),
        lambda s: [moved(_hartmann, 100 * s + 1, 6, sign=-1.0)],
        lambda s: moved(_hartmann, 100 * s, 6),
    ),
    "hartmann-noise": Family(
        cube(6),
        lambda s: [noise(100 * s + i) for i in (1, 2, 3)],
        lambda s: moved(_hartmann, 100 * s, 6),
    ),
    "branin-inverted": Family(
        cube(2),
        lambda s: [moved(_branin, 100 * s + 1, 2, sign=-1.0)],
        lambda s: moved(_branin, 100 * s, 2),
    ),
    "branin-other": Family(
        cube(2),
        lambda s: [bowl(100 * s + i, 2) for i in (1, 2)],
        lambda s: moved(_branin, 100 * s, 2),
    ),
    "svr-noise": Family(
        SVR_SPACE,
        lambda s: [noise(100 * s + i) for i in (1, 2, 3)],
        lambda s: regression(100 * s),
    ),
}


def run(study: optuna.Study, family: Family, function: Function, trials: int) -> list[float]:
    """Return the best value after each trial."""
    best, found = math.inf, []
    for _ in range(trials):
        trial = study.ask(dict(family.space))
        value = function(trial.params)
        study.tell(trial, value)
        best = min(best, value)
        found.append(best)
    return found


def earlier_studies(family: Family, seed: int, trials: int) -> list[optuna.Study]:
    """Return the finished earlier searches."""
    studies = []
    for i, function in enumerate(family.earlier(seed)):
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1000 * seed + i))
        run(study, family, function, trials)
        studies.append(study)
    return studies


def to_earlier(study: optuna.Study, name: str) -> EarlierSearch:
    """Return a study as an earlier search."""
    trials = tuple(EarlierTrial(t.params, float(t.value or 0.0)) for t in study.trials)
    return EarlierSearch(name=name, maximize=False, trials=trials, n_complete=len(trials))


def search(
    family: Family, method: str, seed: int, trials: int, studies: Sequence[optuna.Study]
) -> list[float]:
    """Return the best value after each trial of one method."""
    if method.startswith("cma"):
        source = studies[0].trials if method == "cma+learn" else None
        cma = optuna.samplers.CmaEsSampler(seed=seed, source_trials=source)
        return run(optuna.create_study(sampler=cma), family, family.target(seed), trials)
    chooser = GPEIOptChooser(seed=seed)
    study = optuna.create_study(sampler=chooser)
    if method == "learn":
        names = {n: family.space[n] for n in sorted(family.space)}
        space = Space(tuple(map(dimension, names.values())))
        chooser.earlier = [to_earlier(each, str(i)) for i, each in enumerate(studies)]
        variables = variables_of(names, space)
        tasks = [matched(each, variables) for each in chooser.earlier]
        tasks = [task for task in tasks if task.is_usable]
        size = n_seeds(chooser.n_initial(len(space)), len(tasks))
        for point in first_points(tasks, names, space, size):
            study.enqueue_trial(point)
    return run(study, family, family.target(seed), trials)


def main() -> None:
    """Print a line for each family and method, and pairs of ``learn`` and ``plain``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--earlier-trials", type=int, default=60)
    parser.add_argument("--families", nargs="+", default=list(FAMILIES), choices=FAMILIES)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--results", type=Path, help="Continue and store runs in this file.")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    known: dict[str, list[float]] = {}
    if given.results and given.results.exists():
        known = json.loads(given.results.read_text())
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    for name in given.families:
        family, start = FAMILIES[name], time.process_time()
        for seed in seeds:
            missing = [m for m in given.methods if f"{name}/{m}/{seed}" not in known]
            if not missing:
                continue
            studies = earlier_studies(family, seed, given.earlier_trials)
            for method in missing:
                found = search(family, method, seed, given.trials, studies)
                known[f"{name}/{method}/{seed}"] = found
            if given.results:
                given.results.write_text(json.dumps(known))
        report(name, known, seeds, given.trials, time.process_time() - start)


def report(
    name: str, known: Mapping[str, list[float]], seeds: Sequence[int], trials: int, seconds: float
) -> None:
    """Print the regrets of the methods in one family, and how often ``learn`` is better."""
    marks = [n for n in (5, 10, 20, 40) if n <= trials]
    methods = [m for m in METHODS if f"{name}/{m}/{seeds[0]}" in known]
    runs = {(m, s): known[f"{name}/{m}/{s}"] for m in methods for s in seeds}
    floor = {s: min(runs[m, s][-1] for m in methods) for s in seeds}
    first = {s: max(runs[m, s][0] for m in methods) - floor[s] or 1.0 for s in seeds}
    print(f"{name} ({seconds:.0f} s)")
    for method in methods:
        shares = {n: [(runs[method, s][n - 1] - floor[s]) / first[s] for s in seeds] for n in marks}
        text = ", ".join(f"{median(v):.2g} ({max(v):.2g}) at {n}" for n, v in shares.items())
        print(f"  {method:10} {text}", flush=True)
    if {"plain", "learn"} <= set(methods):
        pairs = []
        for n in marks:
            gaps = [runs["plain", s][n - 1] - runs["learn", s][n - 1] for s in seeds]
            pairs.append(f"{sum(g > 0 for g in gaps)}:{sum(g < 0 for g in gaps)} at {n}")
        print(f"  learn better:worse than plain {', '.join(pairs)}", flush=True)


if __name__ == "__main__":
    main()
