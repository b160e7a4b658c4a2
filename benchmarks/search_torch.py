"""A real task with PyTorch: a network for handwritten digits. PyTorch is imported by a trial."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from search_problems import Params

SPACE: dict[str, BaseDistribution] = {
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "weight_decay": FloatDistribution(1e-7, 0.1, log=True),
    "units": IntDistribution(8, 128, log=True),
    "depth": IntDistribution(1, 3),
    "dropout": FloatDistribution(0.0, 0.7),
    "batch": IntDistribution(16, 128, log=True),
    "activation": CategoricalDistribution(("relu", "tanh", "gelu")),
    "optimizer": CategoricalDistribution(("sgd", "adam", "rmsprop")),
}


def network(data: tuple[np.ndarray, np.ndarray], seed: int) -> Callable[[Params], float]:
    """Return the validation loss of a network in PyTorch for the digits after 12 epochs."""

    def function(params: Params) -> float:
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
        rows, targets = data
        order = np.random.default_rng(seed).permutation(len(rows))
        x = torch.tensor(rows[order], dtype=torch.float32)
        y = torch.tensor(targets[order])
        held = len(x) // 3
        model = _layers(params, x.shape[1])
        kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}
        optimizer = kind[params["optimizer"]](
            model.parameters(), lr=params["lr"], weight_decay=params["weight_decay"]
        )
        loss = torch.nn.CrossEntropyLoss()
        for _ in range(12):
            for rows_of in torch.randperm(len(x) - held).split(params["batch"]):
                optimizer.zero_grad()
                loss(model(x[held:][rows_of]), y[held:][rows_of]).backward()
                optimizer.step()
        model.eval()
        with torch.no_grad():
            value = float(loss(model(x[:held]), y[:held]))
        return min(value, 10.0) if np.isfinite(value) else 10.0

    return function


def _layers(params: Params, width: int) -> Any:
    import torch

    kind = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh, "gelu": torch.nn.GELU}
    layers: list[Any] = []
    for _ in range(params["depth"]):
        layers += [torch.nn.Linear(width, params["units"]), kind[params["activation"]]()]
        layers.append(torch.nn.Dropout(params["dropout"]))
        width = params["units"]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 10))
