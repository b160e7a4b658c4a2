"""More real tasks in mixed spaces, with other models than search_tasks.py.

A change of a chooser is tried on the tasks of search_tasks.py, and judged on these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from optuna.distributions import FloatDistribution, IntDistribution
from search_problems import Params
from search_tasks import Model
from search_validated import log_scale, one_of, task, validated


def _without(params: Params, *names: str) -> Params:
    return {name: value for name, value in params.items() if name not in names}


def _adaboost(params: Params) -> Model:
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    rest = _without(params, "n_estimators", "learning_rate")
    return AdaBoostClassifier(
        DecisionTreeClassifier(**rest, random_state=0),
        n_estimators=params["n_estimators"],
        learning_rate=params["learning_rate"],
        random_state=0,
    )


def _nystroem(params: Params) -> Model:
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    offset = {} if params["kernel"] in ("rbf", "laplacian") else {"coef0": 1.0}
    features = Nystroem(**_without(params, "alpha"), **offset, random_state=0)
    return make_pipeline(features, Ridge(alpha=params["alpha"]))


def _bayes(params: Params) -> Model:
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest, f_classif
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler

    k, even = params["k"], params["priors"] == "even"
    if params["features"] == "best":
        steps = [MinMaxScaler(), SelectKBest(f_classif, k=k)]
    else:
        steps = [PCA(k, whiten=params["features"] == "white", random_state=0)]
    priors = np.full(10, 0.1) if even else None
    return make_pipeline(*steps, GaussianNB(priors=priors, var_smoothing=params["smoothing"]))


def _elastic(params: Params) -> Model:
    from sklearn.linear_model import ElasticNet
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    terms = PolynomialFeatures(
        params["degree"], interaction_only=params["interaction_only"], include_bias=False
    )
    rest = _without(params, "degree", "interaction_only")
    return make_pipeline(terms, ElasticNet(**rest, max_iter=60, random_state=0))


def _of(module: str, name: str, settings: dict[str, Any], params: Params) -> Model:
    """Return an estimator; ``units`` and ``depth`` are the layers of a network."""
    from importlib import import_module

    rest = _without(params, "units", "depth")
    if "units" in params:
        rest["hidden_layer_sizes"] = (params["units"],) * params["depth"]
    return getattr(import_module(f"sklearn.{module}"), name)(**rest, **settings)


def _model(module: str, name: str, **settings: Any) -> Callable[[Params], Model]:
    return partial(_of, module, name, settings)


def _discriminant(params: Params) -> Model:
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    return make_pipeline(
        PCA(params["k"], random_state=0, whiten=params["whiten"]),
        PolynomialFeatures(params["degree"], include_bias=False),
        LinearDiscriminantAnalysis(solver="lsqr", shrinkage=params["shrinkage"]),
    )


_more = partial(task, group="more tasks")
MORE_TASKS = {
    "adaboost": _more(
        "AdaBoost of trees, breast cancer, log loss",
        validated("breast_cancer", "neg_log_loss", _adaboost),
        {
            "max_depth": IntDistribution(1, 5),
            "criterion": one_of("gini", "entropy"),
            "min_samples_leaf": IntDistribution(1, 30),
            "n_estimators": IntDistribution(2, 12),
            "learning_rate": log_scale(0.01, 2.0),
        },
    ),
    "nystroem": _more(
        "Nystroem features and ridge, diabetes, absolute error",
        validated("diabetes", "neg_mean_absolute_error", _nystroem),
        {
            "kernel": one_of("rbf", "laplacian", "poly", "sigmoid"),
            "gamma": log_scale(1e-5, 1.0),
            "n_components": IntDistribution(5, 150),
            "alpha": log_scale(1e-4, 1e2),
        },
    ),
    "bayes": _more(
        "Gaussian naive Bayes, digits, log loss",
        validated("digits", "neg_log_loss", _bayes),
        {
            "k": IntDistribution(3, 40),
            "features": one_of("best", "pca", "white"),
            "smoothing": log_scale(1e-9, 1.0),
            "priors": one_of("data", "even"),
        },
    ),
    "elastic": _more(
        "Elastic net of polynomials, diabetes, squared error",
        validated("diabetes", "neg_mean_squared_error", _elastic),
        {
            "degree": IntDistribution(1, 3),
            "interaction_only": one_of(False, True),
            "alpha": log_scale(1e-3, 1.0),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "selection": one_of("cyclic", "random"),
        },
    ),
    "random-forest": _more(
        "Random forest, diabetes, absolute error",
        validated(
            "diabetes",
            "neg_mean_absolute_error",
            _model("ensemble", "RandomForestRegressor", random_state=0),
        ),
        {
            "n_estimators": IntDistribution(3, 20),
            "max_depth": IntDistribution(1, 15),
            "min_samples_split": IntDistribution(2, 60),
            "max_features": FloatDistribution(0.1, 1.0),
            "criterion": one_of("squared_error", "friedman_mse"),
            "bootstrap": one_of(True, False),
        },
    ),
    "regressor": _more(
        "Multi-layer perceptron, diabetes, squared error",
        validated(
            "diabetes",
            "neg_mean_squared_error",
            _model("neural_network", "MLPRegressor", max_iter=15, random_state=0),
        ),
        {
            "units": IntDistribution(4, 64, log=True),
            "depth": IntDistribution(1, 3),
            "activation": one_of("relu", "tanh", "logistic"),
            "solver": one_of("sgd", "adam"),
            "learning_rate_init": log_scale(1e-4, 0.3),
            "alpha": log_scale(1e-6, 10.0),
            "momentum": FloatDistribution(0.0, 0.98),
        },
    ),
    "nu-svm": _more(
        "Nu support vector machine, wine, error",
        validated("wine", "accuracy", _model("svm", "NuSVC", max_iter=5000)),
        {
            "nu": FloatDistribution(0.02, 0.6),
            "gamma": log_scale(1e-5, 1.0),
            "kernel": one_of("rbf", "poly", "sigmoid"),
            "degree": IntDistribution(2, 5),
            "coef0": FloatDistribution(0.0, 2.0),
        },
    ),
    "linear": _more(
        "Linear model by stochastic gradients, digits, error",
        validated(
            "digits",
            "accuracy",
            _model("linear_model", "SGDClassifier", max_iter=10, tol=None, random_state=0),
        ),
        {
            "loss": one_of("hinge", "log_loss", "modified_huber", "squared_hinge"),
            "alpha": log_scale(1e-7, 1.0),
            "learning_rate": one_of("optimal", "constant", "invscaling"),
            "eta0": log_scale(1e-4, 10.0),
            "average": one_of(False, True),
            "penalty": one_of("l1", "l2"),
        },
    ),
    "minkowski": _more(
        "Nearest neighbours, iris, error",
        validated("iris", "accuracy", _model("neighbors", "KNeighborsClassifier")),
        {
            "n_neighbors": IntDistribution(1, 50, log=True),
            "p": FloatDistribution(1.0, 6.0),
            "weights": one_of("uniform", "distance"),
        },
    ),
    "histogram": _more(
        "Boosting of histograms, wine, log loss",
        validated(
            "wine",
            "neg_log_loss",
            _model(
                "ensemble",
                "HistGradientBoostingClassifier",
                random_state=0,
                early_stopping=False,
            ),
        ),
        {
            "max_iter": IntDistribution(5, 40),
            "learning_rate": log_scale(0.01, 1.0),
            "max_leaf_nodes": IntDistribution(2, 31),
            "min_samples_leaf": IntDistribution(1, 40),
            "l2_regularization": log_scale(1e-6, 10.0),
            "max_bins": IntDistribution(4, 255, log=True),
        },
    ),
    "logistic": _more(
        "Logistic regression, breast cancer, log loss",
        validated(
            "breast_cancer",
            "neg_log_loss",
            _model(
                "linear_model", "LogisticRegression", solver="saga", max_iter=40, random_state=0
            ),
        ),
        {
            "C": log_scale(1e-4, 1e3),
            "l1_ratio": FloatDistribution(0.0, 1.0),
            "class_weight": one_of(None, "balanced"),
            "fit_intercept": one_of(True, False),
        },
    ),
    "discriminant": _more(
        "Linear discriminant of polynomials, digits, log loss",
        validated("digits", "neg_log_loss", _discriminant),
        {
            "k": IntDistribution(2, 20),
            "whiten": one_of(False, True),
            "degree": IntDistribution(1, 2),
            "shrinkage": FloatDistribution(0.0, 1.0),
        },
    ),
}
