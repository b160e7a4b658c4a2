"""Learning curves of real trainings on a grid of hyperparameters, for ``search_fidelity.py``.

Most tasks train a network of one hidden layer by SGD with momentum, in numpy, on a dataset that
scikit-learn ships. All configurations with the same shapes train at once, as one batch of matrices.
The task ``boosting`` trains scikit-learn's gradient boosting of trees; an epoch is a tree.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.ensemble import GradientBoostingRegressor

EPOCHS = 81
NETWORKS = {
    "lr": tuple(10.0 ** np.linspace(-3.5, 0.5, 9)),
    "units": (4, 8, 16, 32, 64),
    "batch": (16, 32, 64),
    "decay": (0.0, 1e-4, 1e-3, 1e-2),
    "momentum": (0.0, 0.9),
}
BOOSTING = {
    "lr": tuple(10.0 ** np.linspace(-2.0, 0.0, 9)),
    "depth": (1, 2, 3, 5, 8),
    "leaf": (1, 5, 20),
    "subsample": (0.25, 0.5, 0.75, 1.0),
    "features": (0.3, 1.0),
}
TASKS = ("digits", "digits-noisy", "breast-cancer", "diabetes", "boosting")
GRIDS = {task: BOOSTING if task == "boosting" else NETWORKS for task in TASKS}
SEEN = ("digits", "digits-noisy", "breast-cancer", "diabetes")  # while the rules were chosen


@dataclass(frozen=True)
class Table:
    """Validation losses by configuration and epoch, and the seconds of an epoch.

    Attributes:
        losses: Shape ``(9, 5, 3, 4, 2, EPOCHS)``, by index in the grid of the task; never NaN.
        seconds: Of one epoch by the second and third index, shape ``(5, 3)``; their mean is 1.
    """

    losses: np.ndarray
    seconds: np.ndarray


def table(task: str, folder: Path) -> Table:
    """Return the curves of ``task``, from ``folder`` or by training."""
    file = folder / f"{task}.npz"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        losses, seconds = (_boost_all if task == "boosting" else _train_all)(task)
        np.savez_compressed(file, losses=losses, seconds=seconds)
    stored = np.load(file)
    return Table(stored["losses"], stored["seconds"])


def _data(task: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs and targets for training and validation: one-hot, or one column."""
    rng = np.random.default_rng(7)
    load = {"breast-cancer": datasets.load_breast_cancer, "diabetes": datasets.load_diabetes}
    x, y = load.get(task, datasets.load_digits)(return_X_y=True)
    order = rng.permutation(len(x))
    x, y = x[order], y[order]
    n = held = len(x) * 2 // 3
    x = (x - x[:n].mean(axis=0)) / (x[:n].std(axis=0) + 1e-9)
    if task == "diabetes":
        target = ((y - y[:n].mean()) / y[:n].std())[:, None]
    else:
        target = np.eye(int(y.max()) + 1)[y]
    if task == "digits-noisy":  # a fifth of the labels is wrong, on a fifth of the images
        n = len(x) // 5
        wrong = rng.random(n) < 0.2
        target[:n][wrong] = np.eye(10)[rng.integers(0, 10, wrong.sum())]
    return tuple(a.astype(np.float32) for a in (x[:n], target[:n], x[held:], target[held:]))


def _train_all(task: str) -> tuple[np.ndarray, np.ndarray]:
    shape = tuple(len(values) for values in NETWORKS.values())
    losses = np.empty((*shape, EPOCHS))
    seconds = np.empty((shape[1], shape[2]))
    data = _data(task)
    for u, b in itertools.product(range(shape[1]), range(shape[2])):
        each = list(itertools.product(NETWORKS["lr"], NETWORKS["decay"], NETWORKS["momentum"]))
        curves = _train(task, data, NETWORKS["units"][u], NETWORKS["batch"][b], np.array(each))
        losses[:, u, b] = curves.reshape(shape[0], shape[3], shape[4], EPOCHS)
        start = time.perf_counter()
        _train(task, data, NETWORKS["units"][u], NETWORKS["batch"][b], np.array(each[:1]), epochs=3)
        seconds[u, b] = (time.perf_counter() - start) / 3
    return losses, seconds / seconds.mean()


def _boost_all(task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return validation errors after each tree, on Friedman's first function."""
    x, y = datasets.make_friedman1(n_samples=600, noise=1.0, random_state=7)
    shape = tuple(len(values) for values in BOOSTING.values())
    losses, seconds = np.empty((*shape, EPOCHS)), np.zeros(shape[1:3])
    for place in np.ndindex(*shape):
        lr, depth, leaf, subsample, features = (
            values[i] for values, i in zip(BOOSTING.values(), place, strict=True)
        )
        model = GradientBoostingRegressor(
            n_estimators=EPOCHS,
            learning_rate=lr,
            max_depth=depth,
            min_samples_leaf=leaf,
            subsample=subsample,
            max_features=features,
            random_state=3,
        )
        start = time.process_time()
        model.fit(x[:400], y[:400])
        seconds[place[1:3]] += time.process_time() - start
        errors = [((y[400:] - each) ** 2).mean() for each in model.staged_predict(x[400:])]
        losses[place] = np.minimum(errors, 2 * y[400:].var())
    return losses, seconds / seconds.mean()


def _train(task, data, units: int, batch: int, each: np.ndarray, epochs: int = EPOCHS):
    """Return the validation losses of configurations ``each`` = (lr, decay, momentum)."""
    x, y, x_valid, y_valid = data
    lr, decay, momentum = (column.astype(np.float32)[:, None, None] for column in each.T)
    rng = np.random.default_rng(3)
    sizes, n = (x.shape[1], units, y.shape[1]), len(each)
    weights = [
        np.repeat(rng.normal(0, (2 / a) ** 0.5, (1, a, b)), n, axis=0).astype(np.float32)
        for a, b in itertools.pairwise(sizes)
    ]
    weights += [np.zeros((n, 1, size), np.float32) for size in sizes[1:]]
    speeds = [np.zeros_like(w) for w in weights]
    curves = np.empty((n, epochs))
    with np.errstate(all="ignore"):
        for epoch in range(epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x), batch):
                rows = order[start : start + batch]
                slopes = _slopes(task, weights, x[rows], y[rows])
                for w, speed, slope in zip(weights, speeds, slopes, strict=True):
                    speed *= momentum
                    speed -= lr * (slope + decay * w)
                    w += speed
            curves[:, epoch] = _loss(task, _outputs(weights, x_valid)[1], y_valid)
    worst = 2 * _loss(task, np.zeros((1, *y_valid.shape), np.float32), y_valid)[0]
    return np.where(np.isfinite(curves), np.minimum(curves, worst), worst)


def _outputs(weights, x):
    hidden = np.maximum(x @ weights[0] + weights[2], 0)
    return hidden, hidden @ weights[1] + weights[3]


def _slopes(task: str, weights, x, y):
    hidden, out = _outputs(weights, x)
    error = (out - y if task == "diabetes" else _softmax(out) - y) / np.float32(len(x))
    back = (error @ weights[1].swapaxes(1, 2)) * (hidden > 0)
    return (
        x.T @ back,
        hidden.swapaxes(1, 2) @ error,
        back.sum(axis=1, keepdims=True),
        error.sum(axis=1, keepdims=True),
    )


def _softmax(out):
    raised = np.exp(out - out.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _loss(task: str, out, y):
    """Return the mean squared error or cross entropy of each configuration."""
    if task == "diabetes":
        return ((out - y) ** 2).mean(axis=(1, 2))
    return -np.log(np.maximum((_softmax(out) * y).sum(axis=-1), 1e-12)).mean(axis=-1)
