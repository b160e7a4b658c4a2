"""Problems of the search benchmark: functions with known minima, and their Optuna spaces."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

Params = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function to minimise.

    Attributes:
        label: Name in tables.
        space: The search space.
        function: Returns the true value at a point; None if it depends on the seed.
        instance: Returns the function for a seed.
        minimum: Minimum of the function.
        trials: Number of trials of a search.
        noise: Standard deviation of the Gaussian noise in the values that a method gets.
        exact: Whether methods are told that there is no noise.
        pending: Number of trials that run at the same time.
        group: Group of problems for which the methods are ranked.
    """

    label: str
    space: dict[str, BaseDistribution]
    function: Callable[[Params], float] | None = None
    instance: Callable[[int], Callable[[Params], float]] | None = None
    minimum: float
    trials: int = 60
    noise: float = 0.0
    exact: bool = True
    pending: int = 1
    group: str = "functions"

    def of(self, seed: int) -> Callable[[Params], float]:
        """Return the function for a search with ``seed``."""
        function = self.instance(seed) if self.instance is not None else self.function
        if function is None:
            raise TypeError(f"{self.label}: neither function nor instance")
        return function


def _cube(n: int, low: float, high: float) -> dict[str, BaseDistribution]:
    return {f"x{i}": FloatDistribution(low, high) for i in range(n)}


def _vector(params: Params) -> np.ndarray:
    return np.array([params[f"x{i}"] for i in range(len(params))])


def branin(params: Params) -> float:
    """Return Branin's function (Dixon and Szego 1978) for x0 in [-5, 10], x1 in [0, 15]."""
    a, b = _vector(params)
    bowl = b - 5.1 / (4.0 * math.pi**2) * a**2 + 5.0 / math.pi * a - 6.0
    return float(bowl**2 + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(a) + 10.0)


_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN6_ARGMIN = np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])


def hartmann6(params: Params) -> float:
    """Return Hartmann's function in six dimensions (Dixon and Szego 1978) on the unit cube."""
    distance = np.sum(_HARTMANN_A * (_vector(params) - _HARTMANN_P) ** 2, axis=1)
    return float(-_HARTMANN_ALPHA @ np.exp(-distance))


def levy(params: Params) -> float:
    """Return Levy's function (Laguna and Marti 2005, no. 18) on [-10, 10]^n."""
    w = 1.0 + (_vector(params) - 1.0) / 4.0
    head, last = w[:-1], w[-1]
    middle = np.sum((head - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * head + 1.0) ** 2))
    end = (last - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * last) ** 2)
    return float(math.sin(math.pi * w[0]) ** 2 + middle + end)


def ackley(params: Params) -> float:
    """Return Ackley's function (Ackley 1987), a = 20, b = 0.2, c = 2 pi."""
    x = _vector(params)
    bowl = -20.0 * math.exp(-0.2 * math.sqrt(np.mean(x**2)))
    return float(bowl - math.exp(np.mean(np.cos(2.0 * math.pi * x))) + 20.0 + math.e)


def styblinski_tang(params: Params) -> float:
    """Return the function of Styblinski and Tang (1990) on [-5, 5]^n."""
    x = _vector(params)
    return float(0.5 * np.sum(x**4 - 16.0 * x**2 + 5.0 * x))


# For each activation: best log10 of the learning rate, depth and dropout, and the offset.
_MIXED = {
    "relu": (-4.2, 3, 0.10, 0.35),
    "tanh": (-1.8, 9, 0.45, 0.25),
    "elu": (-2.9, 7, 0.30, 0.00),
    "gelu": (-3.6, 5, 0.20, 0.12),
}


def mixed(params: Params) -> float:
    """Return a synthetic loss of a network, with a different optimum per category; minimum 0.

    It has a minimum in the logarithm of the learning rate that depends on the depth and has
    ripples, a logarithmic penalty of the depth, and a parabola in the dropout.
    """
    lr, depth, dropout, offset = _MIXED[params["activation"]]
    levels = (params["depth"] - depth) / 4.0
    u = params["log_lr"] - lr + 0.4 * levels
    well = 0.6 * (1.0 - math.exp(-0.8 * u**2)) + 0.05 * (1.0 - math.cos(4.0 * u))
    penalty = 0.25 * math.log1p(2.0 * levels**2) + 0.8 * (params["dropout"] - dropout) ** 2
    return offset + well + penalty


@cache
def _standardised(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and targets of a dataset of scikit-learn, with standardised columns."""
    from sklearn import datasets

    rows, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0), targets


def svm(params: Params) -> float:
    """Return the log loss of the margins of a support vector machine on breast cancer, 4 folds."""
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    x, y = _standardised("breast_cancer")
    losses = []
    for train, held in StratifiedKFold(4, shuffle=True, random_state=0).split(x, y):
        model = SVC(C=params["C"], gamma=params["gamma"]).fit(x[train], y[train])
        margin = model.decision_function(x[held]) * np.where(y[held] == 1, 1.0, -1.0)
        losses.append(np.mean(np.log1p(np.exp(-margin))))
    return float(np.mean(losses))


def ridge(params: Params) -> float:
    """Return the squared error of kernel ridge regression on diabetes, 5 folds, target scaled."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import KFold

    x, y = _standardised("diabetes")
    y = (y - y.mean()) / y.std()
    errors = []
    for train, held in KFold(5, shuffle=True, random_state=0).split(x):
        model = KernelRidge(alpha=params["alpha"], gamma=params["gamma"], kernel="rbf")
        errors.append(np.mean((model.fit(x[train], y[train]).predict(x[held]) - y[held]) ** 2))
    return float(np.mean(errors))


def network(params: Params) -> float:
    """Return the validation loss of a network for handwritten digits after 8 epochs."""
    import pycuda_nn as nn

    config = nn.TrainConfig(
        hidden=(params["units"],) * params["depth"],
        activation=params["activation"],
        dropout=params["dropout"],
        l2=params["l2"],
        optimizer="sgd",
        lr=params["lr"],
        momentum=params["momentum"],
        nesterov=True,
        schedule="cosine",
        warmup_epochs=1,
        epochs=8,
        batch_size=64,
        scale="unit",
        seed=1,
    )
    try:
        return nn.train(config, *_digits()).history[-1].valid_loss
    except nn.TrainingDiverged:
        return 3.0  # worse than random guesses


@cache
def _digits() -> tuple[Any, Any]:
    """Return the training and the validation set of the digits: 60 % and 20 %."""
    import pycuda_nn as nn

    train, valid, _ = nn.split(nn.load_data("digits"), fractions=(0.6, 0.2, 0.2), seed=0)
    return train, valid


_MIXED_SPACE: dict[str, BaseDistribution] = {
    "log_lr": FloatDistribution(-6.0, 0.0),
    "dropout": FloatDistribution(0.0, 0.6),
    "depth": IntDistribution(1, 12),
    "activation": CategoricalDistribution(tuple(_MIXED)),
}
_HARTMANN_MINIMUM = -3.322368011415515

PROBLEMS = {
    "branin": Problem(
        label="Branin",
        space={"x0": FloatDistribution(-5.0, 10.0), "x1": FloatDistribution(0.0, 15.0)},
        function=branin,
        minimum=0.39788735772973816,
        trials=40,
    ),
    "hartmann6": Problem(
        label="Hartmann, 6 dimensions",
        space=_cube(6, 0.0, 1.0),
        function=hartmann6,
        minimum=_HARTMANN_MINIMUM,
    ),
    "hartmann6-100": Problem(
        label="Hartmann, 6 dimensions, 100 trials",
        space=_cube(6, 0.0, 1.0),
        function=hartmann6,
        minimum=_HARTMANN_MINIMUM,
        trials=100,
        exact=False,
    ),
    "hartmann6-noisy": Problem(
        label="Hartmann, 6 dimensions, noise of standard deviation 0.1",
        space=_cube(6, 0.0, 1.0),
        function=hartmann6,
        minimum=_HARTMANN_MINIMUM,
        trials=100,
        noise=0.1,
    ),
    "hartmann6-pending8": Problem(
        label="Hartmann, 6 dimensions, 8 trials always running",
        space=_cube(6, 0.0, 1.0),
        function=hartmann6,
        minimum=_HARTMANN_MINIMUM,
        pending=8,
    ),
    "levy4": Problem(
        label="Levy, 4 dimensions", space=_cube(4, -10.0, 10.0), function=levy, minimum=0.0
    ),
    "mixed": Problem(
        label="Mixed: 2 floats, a whole number, 4 categories",
        space=_MIXED_SPACE,
        function=mixed,
        minimum=0.0,
    ),
    "ackley5": Problem(
        label="Ackley, 5 dimensions",
        space=_cube(5, -15.0, 30.0),  # so that the minimum is not in the centre
        function=ackley,
        minimum=0.0,
    ),
    "styblinski5": Problem(
        label="Styblinski-Tang, 5 dimensions",
        space=_cube(5, -5.0, 5.0),
        function=styblinski_tang,
        minimum=5 * -39.16616570377142,
    ),
    "network": Problem(
        label="Network for the digits, 7 parameters (the loss itself)",
        space={
            "lr": FloatDistribution(0.001, 0.5, log=True),
            "l2": FloatDistribution(1e-6, 0.01, log=True),
            "momentum": FloatDistribution(0.0, 0.95),
            "units": IntDistribution(16, 256, log=True),
            "depth": IntDistribution(1, 4),
            "dropout": FloatDistribution(0.0, 0.5),
            "activation": CategoricalDistribution(("relu", "tanh", "sigmoid")),
        },
        function=network,
        minimum=0.0,
        trials=40,
        exact=False,  # the function is deterministic, but as rough as noise
    ),
    # The minima of the next two problems are from Nelder-Mead on the logarithms, several starts.
    "svm-linear": Problem(
        label="Support vector machine, breast cancer, scales declared linear",
        space={"C": FloatDistribution(0.01, 1000.0), "gamma": FloatDistribution(1e-5, 2.0)},
        function=svm,
        minimum=0.104519,
        trials=40,
    ),
    "ridge-linear": Problem(
        label="Kernel ridge regression, diabetes, scales declared linear",
        space={"alpha": FloatDistribution(1e-4, 100.0), "gamma": FloatDistribution(1e-5, 1.0)},
        function=ridge,
        minimum=0.485482756,
        trials=40,
    ),
}
