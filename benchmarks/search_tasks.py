"""Real tasks in mixed spaces: models of scikit-learn and PyTorch on data that scikit-learn ships.

The value is the mean loss over the folds of a cross-validation; the seed of a search shuffles the
folds. All tasks are deterministic, but most are as rough as noise.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from optuna.distributions import FloatDistribution, IntDistribution
from search_problems import Params
from search_torch import SPACE, network
from search_validated import data, log_scale, one_of, task, validated

Model = Any


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


TASKS = {
    "svm": task(
        "Support vector machine, breast cancer, error",
        validated("breast_cancer", "accuracy", _svm),
        {
            "C": log_scale(1e-3, 1e3),
            "gamma": log_scale(1e-5, 10.0),
            "kernel": one_of("rbf", "poly", "sigmoid"),
            "degree": IntDistribution(2, 5),
            "class_weight": one_of(None, "balanced"),
        },
    ),
    "forest": task(
        "Extra trees, digits, log loss",
        validated("digits", "neg_log_loss", _forest),
        {
            "n_estimators": IntDistribution(2, 20),
            "max_depth": IntDistribution(2, 20),
            "min_samples_leaf": IntDistribution(1, 20),
            "max_features": FloatDistribution(0.05, 1.0),
            "criterion": one_of("gini", "entropy"),
            "bootstrap": one_of(False, True),
        },
    ),
    "boosting": task(
        "Gradient boosting, diabetes, squared error",
        validated("diabetes", "neg_mean_squared_error", _boosting),
        {
            "learning_rate": log_scale(1e-3, 1.0),
            "n_estimators": IntDistribution(5, 60),
            "max_depth": IntDistribution(1, 6),
            "subsample": FloatDistribution(0.3, 1.0),
            "min_samples_leaf": IntDistribution(1, 40),
            "loss": one_of("squared_error", "absolute_error", "huber"),
        },
    ),
    "perceptron": task(
        "Multi-layer perceptron, digits, log loss",
        validated("digits", "neg_log_loss", _perceptron),
        {
            "units": IntDistribution(8, 96, log=True),
            "depth": IntDistribution(1, 3),
            "activation": one_of("relu", "tanh", "logistic"),
            "alpha": log_scale(1e-6, 10.0),
            "learning_rate_init": log_scale(1e-4, 0.3),
            "batch_size": IntDistribution(16, 128, log=True),
        },
    ),
    "sgd": task(
        "Linear model by stochastic gradients, breast cancer, error",
        validated("breast_cancer", "accuracy", _sgd),
        {
            "loss": one_of("hinge", "log_loss", "modified_huber"),
            "penalty": one_of("l1", "l2", "elasticnet"),
            "alpha": log_scale(1e-7, 1.0),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "learning_rate": one_of("constant", "invscaling", "adaptive"),
            "eta0": log_scale(1e-4, 1.0),
        },
    ),
    "neighbours": task(
        "Principal components and nearest neighbours, digits, log loss",
        validated("digits", "neg_log_loss", _neighbours),
        {
            "components": IntDistribution(2, 48),
            "n_neighbors": IntDistribution(1, 60, log=True),
            "weights": one_of("uniform", "distance"),
            "metric": one_of("euclidean", "manhattan", "cosine"),
        },
    ),
    "tree": task(
        "Decision tree, wine, log loss",
        validated("wine", "neg_log_loss", _tree),
        {
            "criterion": one_of("gini", "entropy"),
            "splitter": one_of("best", "random"),
            "max_depth": IntDistribution(1, 12),
            "min_samples_leaf": IntDistribution(1, 40),
            "max_features": FloatDistribution(0.1, 1.0),
            "ccp_alpha": log_scale(1e-5, 0.3),
        },
    ),
    "ridge": task(
        "Kernel ridge regression, diabetes, squared error",
        validated("diabetes", "neg_mean_squared_error", _ridge),
        {
            "alpha": log_scale(1e-4, 1e3),
            "gamma": log_scale(1e-5, 10.0),
            "kernel": one_of("rbf", "laplacian", "poly"),
            "degree": IntDistribution(1, 4),
            "coef0": FloatDistribution(0.0, 5.0),
        },
    ),
    "svr": task(
        "Support vector regression, diabetes, absolute error",
        validated("diabetes", "neg_mean_absolute_error", _svr),
        {
            "C": log_scale(1e-3, 1e3),
            "epsilon": log_scale(1e-3, 1.0),
            "gamma": log_scale(1e-5, 10.0),
            "kernel": one_of("rbf", "linear", "sigmoid"),
        },
    ),
}
if find_spec("torch") is not None:
    TASKS["torch"] = task(
        "Network in PyTorch, digits, log loss", lambda seed: network(data("digits"), seed), SPACE
    )
