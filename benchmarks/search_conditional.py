"""Compare the search of conditional variables with Optuna's: best value after a number of trials.

    python benchmarks/search_conditional.py --seeds 5 --methods GPEIOptChooser TPESampler

``flat`` is GPEIOptChooser with the same variables without conditions, which the function ignores
where they are inactive. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from spearmint import when
from spearmint.choosers import Chooser, GPEIOptChooser, RandomChooser
from spearmint.search.space import read_space
from spearmint.store.distributions import distributions, tree_of

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Problem:
    """A problem: its space as for ``spearmint.Search``, its function, and the number of trials."""

    space: Mapping[str, Any]
    function: Callable[[Params], float]
    trials: int


def jenatton(params: Params) -> float:
    """A tree of binary choices: Jenatton et al. 2017 (ICML), section 5.1; the minimum is 0.1.

    The minima by x are moved from 0, the centre, where this search has inactive variables.
    """
    left = params["x1"] == "0"
    leaf = (params["x2"] if left else params["x3"]) == "1"
    name, offset = (
        (("x5", 0.2) if leaf else ("x4", 0.1)) if left else (("x7", 0.4) if leaf else ("x6", 0.3))
    )
    return float((params[name] - 0.4) ** 2 + offset + params["r8" if left else "r9"])


@cache
def _diabetes() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    x, y = load_diabetes(return_X_y=True)
    return x / x.std(axis=0), (y - y.mean()) / y.std()


def regressors(params: Params) -> float:
    """Cross-validated error of one of four models of scikit-learn on its diabetes data."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge
    from sklearn.neighbors import KNeighborsRegressor
    from sklearn.svm import SVR

    kind = params["model"]
    if kind == "ridge":
        model: Any = Ridge(alpha=params["alpha"])
    elif kind == "svr":
        more = {"degree": params["degree"]} if params["kernel"] == "poly" else {}
        model = SVR(
            kernel=params["kernel"],
            C=params["C"],
            gamma=params["gamma"],
            epsilon=params["epsilon"],
            max_iter=20_000,
            **more,
        )
    elif kind == "forest":
        model = RandomForestRegressor(
            n_estimators=30,
            max_depth=params["depth"],
            max_features=params["features"],
            min_samples_leaf=params["leaf"],
            random_state=0,
        )
    else:
        model = KNeighborsRegressor(params["k"], weights=params["weights"])
    return _error(model, *_diabetes())


def _error(model: Any, x: Any, y: Any) -> float:
    from sklearn.model_selection import cross_val_predict

    return float(np.mean(np.minimum((cross_val_predict(model, x, y, cv=3) - y) ** 2, 25.0)))


@cache
def _cancer() -> tuple[Any, Any]:
    from sklearn.datasets import load_breast_cancer

    x, y = load_breast_cancer(return_X_y=True)
    return (x - x.mean(axis=0)) / x.std(axis=0), y


def classifiers(params: Params) -> float:
    """Cross-validated log loss of one of four classifiers on the breast cancer data."""
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss
    from sklearn.model_selection import cross_val_predict
    from sklearn.neighbors import KNeighborsClassifier

    kind = params["model"]
    if kind == "logistic":
        model: Any = LogisticRegression(C=params["C"], max_iter=200)
    elif kind == "trees":
        model = ExtraTreesClassifier(
            n_estimators=30,
            max_features=params["features"],
            min_samples_leaf=params["leaf"],
            random_state=0,
        )
    elif kind == "boosting":
        model = HistGradientBoostingClassifier(
            max_iter=30,
            learning_rate=params["rate"],
            max_leaf_nodes=params["leaves"],
            l2_regularization=params["l2"],
            random_state=0,
        )
    else:
        model = KNeighborsClassifier(params["k"], p=params["power"])
    x, y = _cancer()
    return float(log_loss(y, cross_val_predict(model, x, y, cv=3, method="predict_proba")))


@cache
def _friedman() -> tuple[Any, Any]:
    from sklearn.datasets import make_friedman1

    x, y = make_friedman1(240, noise=0.5, random_state=0)
    return x - 0.5, (y - y.mean()) / y.std()


def layers(params: Params) -> float:
    """Cross-validated error of a network of one to three layers, which each have a width."""
    from sklearn.neural_network import MLPRegressor

    widths = tuple(params[f"units{i}"] for i in range(1, params["layers"] + 1))
    more = {"learning_rate_init": params["rate"]} if params["solver"] == "adam" else {}
    model = MLPRegressor(
        hidden_layer_sizes=widths,
        solver=params["solver"],
        alpha=params["alpha"],
        max_iter=60,
        random_state=0,
        **more,
    )
    return _error(model, *_friedman())


PROBLEMS = {
    "jenatton": Problem(
        {
            "x1": ["0", "1"],
            "x2": when(["0", "1"], x1="0"),
            "x3": when(["0", "1"], x1="1"),
            "x4": when((-1, 1), x2="0"),
            "x5": when((-1, 1), x2="1"),
            "x6": when((-1, 1), x3="0"),
            "x7": when((-1, 1), x3="1"),
            "r8": when((0, 1), x1="0"),
            "r9": when((0, 1), x1="1"),
        },
        jenatton,
        trials=40,
    ),
    "regressors": Problem(
        {
            "model": ["ridge", "svr", "forest", "neighbours"],
            "alpha": when((1e-4, 1e4, "log"), model="ridge"),
            "kernel": when(["rbf", "poly"], model="svr"),
            "degree": when(range(2, 5), kernel="poly"),
            "C": when((1e-3, 1e3, "log"), model="svr"),
            "gamma": when((1e-5, 10, "log"), model="svr"),
            "epsilon": when((1e-3, 1, "log"), model="svr"),
            "depth": when(range(1, 16), model="forest"),
            "features": when((0.1, 1), model="forest"),
            "leaf": when((range(1, 41), "log"), model="forest"),
            "k": when(range(1, 61), model="neighbours"),
            "weights": when(["uniform", "distance"], model="neighbours"),
        },
        regressors,
        trials=50,
    ),
    "classifiers": Problem(
        {
            "model": ["logistic", "trees", "boosting", "neighbours"],
            "C": when((1e-4, 1e4, "log"), model="logistic"),
            "features": when((0.05, 1), model="trees"),
            "leaf": when((range(1, 21), "log"), model="trees"),
            "rate": when((0.01, 1, "log"), model="boosting"),
            "leaves": when((range(2, 64), "log"), model="boosting"),
            "l2": when((1e-4, 100, "log"), model="boosting"),
            "k": when(range(1, 61), model="neighbours"),
            "power": when((1, 4), model="neighbours"),
        },
        classifiers,
        trials=50,
    ),
    "layers": Problem(
        {
            "layers": range(1, 4),
            "units1": (range(2, 65), "log"),
            "units2": when((range(2, 65), "log"), layers=[2, 3]),
            "units3": when((range(2, 65), "log"), layers=3),
            "alpha": (1e-6, 10, "log"),
            "solver": ["adam", "lbfgs"],
            "rate": when((1e-4, 1, "log"), solver="adam"),
        },
        layers,
        trials=50,
    ),
}
METHODS: dict[str, Callable[[int], BaseSampler]] = {
    "GPEIOptChooser": lambda seed: GPEIOptChooser(seed=seed),
    "flat": lambda seed: GPEIOptChooser(seed=seed),
    "TPESampler": lambda seed: TPESampler(seed=seed),
    "TPESampler, multivariate, group": lambda seed: TPESampler(
        seed=seed, multivariate=True, group=True
    ),
    "RandomChooser": lambda seed: RandomChooser(seed=seed),
    "RandomSampler": lambda seed: RandomSampler(seed=seed),
}


def search(problem: Problem, sampler: BaseSampler, *, flat: bool = False) -> tuple[float, float]:
    """Return the best value and the CPU seconds of a proposal."""
    space = read_space(problem.space)
    variables = tuple(replace(v, when=()) for v in space.variables) if flat else space.variables
    tree = tree_of(variables)
    if isinstance(sampler, Chooser):
        sampler.tree = tree
    study = optuna.create_study(sampler=sampler)
    best, seconds = math.inf, 0.0
    for _ in range(problem.trials):
        start = time.process_time()
        trial = study.ask(distributions(variables) if tree is None else {})
        if tree is not None:
            tree.suggest(trial)
        seconds += time.process_time() - start
        value = problem.function(trial.params)
        study.tell(trial, value)
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
            make, flat = METHODS[method], method == "flat"
            runs = [search(PROBLEMS[name], make(seed), flat=flat) for seed in seeds]
            found = sorted(best for best, _ in runs)
            print(
                f"{name} {method}: median {median(found):.6g}, best {found[0]:.6g}, "
                f"worst {found[-1]:.6g}, {median(s for _, s in runs):.3f} s a proposal",
                flush=True,
            )


if __name__ == "__main__":
    main()
