"""Real tasks in mixed spaces: models of scikit-learn and PyTorch on data that scikit-learn ships.

The value is the mean loss over the folds of a cross-validation; the seed of a search shuffles the
folds. All tasks are deterministic, but most are as rough as noise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from search_problems import Params, Problem
from search_torch import SPACE, network

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


def _validated(name: str, loss: str, model: Callable[[Params], Model]) -> Callable[[int], Any]:
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


def _svm(params: Params) -> Model:
    from sklearn.svm import SVC

    return SVC(**params)


def _forest(params: Params) -> Model:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(**params, random_state=0)


def _boosting(params: Params) -> Model:
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(**params, random_state=0)


def _perceptron(params: Params) -> Model:
    from sklearn.neural_network import MLPClassifier

    rest = {name: value for name, value in params.items() if name not in ("units", "depth")}
    layers = (params["units"],) * params["depth"]
    return MLPClassifier(hidden_layer_sizes=layers, max_iter=6, random_state=0, **rest)


def _sgd(params: Params) -> Model:
    from sklearn.linear_model import SGDClassifier

    return SGDClassifier(**params, max_iter=40, tol=None, random_state=0)


def _neighbours(params: Params) -> Model:
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline

    rest = {name: value for name, value in params.items() if name != "components"}
    reduced = PCA(params["components"], random_state=0)
    return make_pipeline(reduced, KNeighborsClassifier(**rest, algorithm="brute"))


def _tree(params: Params) -> Model:
    from sklearn.tree import DecisionTreeClassifier

    return DecisionTreeClassifier(**params, random_state=0)


def _ridge(params: Params) -> Model:
    from sklearn.kernel_ridge import KernelRidge

    return KernelRidge(**params)


def _svr(params: Params) -> Model:
    from sklearn.svm import SVR

    return SVR(**params, max_iter=20_000)


def _log(low: float, high: float) -> BaseDistribution:
    return FloatDistribution(low, high, log=True)


def _one_of(*choices: Any) -> BaseDistribution:
    return CategoricalDistribution(choices)


_Instance = Callable[[int], Callable[[Params], float]]


def _task(label: str, instance: _Instance, space: dict[str, BaseDistribution]) -> Problem:
    return Problem(
        label=label,
        space=space,
        instance=instance,
        minimum=0.0,
        trials=_TRIALS,
        exact=False,
        group="tasks",
    )


TASKS = {
    "svm": _task(
        "Support vector machine, breast cancer, error",
        _validated("breast_cancer", "accuracy", _svm),
        {
            "C": _log(1e-3, 1e3),
            "gamma": _log(1e-5, 10.0),
            "kernel": _one_of("rbf", "poly", "sigmoid"),
            "degree": IntDistribution(2, 5),
            "class_weight": _one_of(None, "balanced"),
        },
    ),
    "forest": _task(
        "Extra trees, digits, log loss",
        _validated("digits", "neg_log_loss", _forest),
        {
            "n_estimators": IntDistribution(2, 20),
            "max_depth": IntDistribution(2, 20),
            "min_samples_leaf": IntDistribution(1, 20),
            "max_features": FloatDistribution(0.05, 1.0),
            "criterion": _one_of("gini", "entropy"),
            "bootstrap": _one_of(False, True),
        },
    ),
    "boosting": _task(
        "Gradient boosting, diabetes, squared error",
        _validated("diabetes", "neg_mean_squared_error", _boosting),
        {
            "learning_rate": _log(1e-3, 1.0),
            "n_estimators": IntDistribution(5, 60),
            "max_depth": IntDistribution(1, 6),
            "subsample": FloatDistribution(0.3, 1.0),
            "min_samples_leaf": IntDistribution(1, 40),
            "loss": _one_of("squared_error", "absolute_error", "huber"),
        },
    ),
    "perceptron": _task(
        "Multi-layer perceptron, digits, log loss",
        _validated("digits", "neg_log_loss", _perceptron),
        {
            "units": IntDistribution(8, 96, log=True),
            "depth": IntDistribution(1, 3),
            "activation": _one_of("relu", "tanh", "logistic"),
            "alpha": _log(1e-6, 10.0),
            "learning_rate_init": _log(1e-4, 0.3),
            "batch_size": IntDistribution(16, 128, log=True),
        },
    ),
    "sgd": _task(
        "Linear model by stochastic gradients, breast cancer, error",
        _validated("breast_cancer", "accuracy", _sgd),
        {
            "loss": _one_of("hinge", "log_loss", "modified_huber"),
            "penalty": _one_of("l1", "l2", "elasticnet"),
            "alpha": _log(1e-7, 1.0),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "learning_rate": _one_of("constant", "invscaling", "adaptive"),
            "eta0": _log(1e-4, 1.0),
        },
    ),
    "neighbours": _task(
        "Principal components and nearest neighbours, digits, log loss",
        _validated("digits", "neg_log_loss", _neighbours),
        {
            "components": IntDistribution(2, 48),
            "n_neighbors": IntDistribution(1, 60, log=True),
            "weights": _one_of("uniform", "distance"),
            "metric": _one_of("euclidean", "manhattan", "cosine"),
        },
    ),
    "tree": _task(
        "Decision tree, wine, log loss",
        _validated("wine", "neg_log_loss", _tree),
        {
            "criterion": _one_of("gini", "entropy"),
            "splitter": _one_of("best", "random"),
            "max_depth": IntDistribution(1, 12),
            "min_samples_leaf": IntDistribution(1, 40),
            "max_features": FloatDistribution(0.1, 1.0),
            "ccp_alpha": _log(1e-5, 0.3),
        },
    ),
    "ridge": _task(
        "Kernel ridge regression, diabetes, squared error",
        _validated("diabetes", "neg_mean_squared_error", _ridge),
        {
            "alpha": _log(1e-4, 1e3),
            "gamma": _log(1e-5, 10.0),
            "kernel": _one_of("rbf", "laplacian", "poly"),
            "degree": IntDistribution(1, 4),
            "coef0": FloatDistribution(0.0, 5.0),
        },
    ),
    "svr": _task(
        "Support vector regression, diabetes, absolute error",
        _validated("diabetes", "neg_mean_absolute_error", _svr),
        {
            "C": _log(1e-3, 1e3),
            "epsilon": _log(1e-3, 1.0),
            "gamma": _log(1e-5, 10.0),
            "kernel": _one_of("rbf", "linear", "sigmoid"),
        },
    ),
}
if find_spec("torch") is not None:
    TASKS["torch"] = _task(
        "Network in PyTorch, digits, log loss", lambda seed: network(data("digits"), seed), SPACE
    )
