"""Compare noisy searches that repeat good points with searches that do not (``replicates=0``).

    python benchmarks/replicates.py [--seeds 20] [--first-seed 0] [--trials 50] [--exact]

Six tasks of scikit-learn with finitely many points. The value of a trial is the loss on a random
fifth of the rows; the true value of a point is its mean over 40 of these splits. Counted is which
search recommends the better point. With --exact, all trials of a search have the same split, so
that there is no noise, and the value of the recommended point on this split is compared.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from sklearn import datasets
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from spearmint.choosers import GPEIOptChooser
from spearmint.choosers.recommendation import recommend

Params = Mapping[str, Any]
Space = dict[str, BaseDistribution]
_SPLITS, _MOST_ROWS = 40, 600


def _svm(p: Params) -> Any:
    return SVC(kernel=p["kernel"], C=10.0 ** p["C"], gamma=10.0 ** p["gamma"])


def _sgd(p: Params) -> Any:
    rest = {"random_state": 0, "max_iter": 20, "tol": None}
    return SGDClassifier(loss=p["loss"], penalty=p["penalty"], alpha=10.0 ** p["alpha"], **rest)


def one_of(*choices: object) -> CategoricalDistribution:
    """Return a variable with these choices."""
    return CategoricalDistribution(choices)


TASKS: dict[str, tuple[str, Callable[[Params], Any], Space]] = {
    "tree": (
        "breast_cancer",
        lambda p: DecisionTreeClassifier(random_state=0, **p),
        {
            "criterion": one_of("gini", "entropy"),
            "max_depth": IntDistribution(1, 8),
            "min_samples_leaf": one_of(1, 5, 15),
        },
    ),
    "neighbours": (
        "wine",
        lambda p: KNeighborsClassifier(**p),
        {
            "n_neighbors": IntDistribution(1, 15),
            "weights": one_of("uniform", "distance"),
            "p": one_of(1, 2),
        },
    ),
    "svm": (
        "wine",
        _svm,
        {
            "kernel": one_of("rbf", "poly", "sigmoid"),
            "C": IntDistribution(-2, 3),
            "gamma": IntDistribution(-4, 0),
        },
    ),
    "forest": (
        "digits",
        lambda p: ExtraTreesClassifier(random_state=0, **p),
        {
            "n_estimators": IntDistribution(3, 10),
            "criterion": one_of("gini", "entropy"),
            "max_depth": IntDistribution(6, 9),
        },
    ),
    "sgd": (
        "wine",
        _sgd,
        {
            "loss": one_of("hinge", "log_loss", "modified_huber"),
            "penalty": one_of("l1", "l2", "elasticnet"),
            "alpha": IntDistribution(-5, -1),
        },
    ),
    "regression tree": (
        "diabetes",
        lambda p: DecisionTreeRegressor(random_state=0, **p),
        {"max_depth": IntDistribution(1, 8), "min_samples_leaf": one_of(1, 5, 10, 20, 40)},
    ),
}


def levels(distribution: BaseDistribution) -> list[Any]:
    """Return all values of a variable."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    return list(range(distribution.low, distribution.high + 1))


def losses(name: str) -> dict[tuple[Any, ...], np.ndarray]:
    """Return the losses of each point of a task on each split."""
    data, model, space = TASKS[name]
    points, y = getattr(datasets, f"load_{data}")(return_X_y=True)
    points, y = points[:_MOST_ROWS], y[:_MOST_ROWS]
    found: dict[tuple[Any, ...], list[float]] = {}
    for seed in range(_SPLITS):
        x, x_test, z, z_test = train_test_split(points, y, test_size=0.2, random_state=seed)
        scale = StandardScaler().fit(x)
        for values in product(*map(levels, space.values())):
            fitted = model(dict(zip(space, values, strict=True))).fit(scale.transform(x), z)
            answer = fitted.predict(scale.transform(x_test))
            loss = (answer - z_test) ** 2 / y.var() if data == "diabetes" else answer != z_test
            found.setdefault(values, []).append(float(np.mean(loss)))
    return {values: np.array(each) for values, each in found.items()}


def searched(
    space: Space, table: Mapping[Any, np.ndarray], splits: np.ndarray, chooser: GPEIOptChooser
) -> tuple[tuple[Any, ...], int]:
    """Return the point that a search recommends, and its number of repetitions."""
    chooser.total, repeated = len(splits), 0
    study = optuna.create_study(sampler=chooser)
    for split in splits:
        trial = study.ask(space)
        repeated += chooser.repeats
        study.tell(trial, float(table[tuple(trial.params[name] for name in space)][split]))
    found = recommend(study)
    best = study.best_trial if found is None else study.trials[found[0].number]
    return tuple(best.params[name] for name in space), repeated


def compare(name: str, seeds: range, n: int, exact: bool) -> Counter[str]:
    """Print a line on a task, and return how often repeating was better, worse and equal."""
    space, table, counts = TASKS[name][2], losses(name), Counter[str]()
    regrets, repeated = {True: [], False: []}, []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        splits = np.full(n, rng.integers(_SPLITS)) if exact else rng.integers(_SPLITS, size=n)
        true = {p: float(each[splits[0]] if exact else each.mean()) for p, each in table.items()}
        for replicates in (True, False):
            chooser = GPEIOptChooser(seed=seed, replicates=replicates)
            point, again = searched(space, table, splits, chooser)
            regrets[replicates].append(true[point] - min(true.values()))
            repeated += [again] if replicates else []
        gap = regrets[True][-1] - regrets[False][-1]
        counts["equal" if abs(gap) < 1e-12 else "better" if gap < 0.0 else "worse"] += 1
    points = len(table)
    sd = np.mean([each.std() for each in table.values()])
    print(
        f"{name:16}{points:4} points, noise {sd:.3f}: {counts['better']}:{counts['worse']}, "
        f"{counts['equal']} equal; mean regret {np.mean(regrets[True]):.5f} with, "
        f"{np.mean(regrets[False]):.5f} without; {np.mean(repeated):.1f} repetitions",
        flush=True,
    )
    return counts


def main() -> None:
    """Run the searches and print the counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--seeds", type=int, default=20, help="Searches of each task. Default: 20.")
    add("--first-seed", type=int, default=0, help="Default: 0.")
    add("--trials", type=int, default=50, help="Trials of a search. Default: 50.")
    add("--exact", action="store_true", help="The same split in all trials of a search.")
    add("--tasks", nargs="+", choices=TASKS, default=list(TASKS), help="Default: all.")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.seeds)
    total = Counter[str]()
    for name in chosen.tasks:
        total.update(compare(name, seeds, chosen.trials, chosen.exact))
    print(f"together {total['better']}:{total['worse']}, {total['equal']} equal")


if __name__ == "__main__":
    main()
