"""Networks and data of the training benchmarks; the scripts in ``benchmarks/`` use them as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

CLASSES = 10
VALID_ROWS = 8192
_DISTINCT_ROWS = 1 << 18  # more rows repeat these: drawing them would be slower than training


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A network with relu layers, how it is trained, and its number of training rows.

    Attributes:
        loss: softmax, logistic or squared.
        optimizer: sgd (with momentum 0.9) or adam.
        dropout: Probability after each hidden layer.
    """

    name: str
    sizes: tuple[int, ...]
    batch: int
    rows: int
    loss: str = "softmax"
    optimizer: str = "sgd"
    dropout: float = 0.0

    @property
    def steps(self) -> int:
        """Steps per epoch."""
        return -(-self.rows // self.batch)

    @property
    def flops(self) -> float:
        """Operations of the matrix products of a full step, without the gradient of the input."""
        products = [i * o for i, o in zip(self.sizes[:-1], self.sizes[1:], strict=True)]
        return 2.0 * self.batch * (3 * sum(products) - products[0])


_NETFLIX = (512, 2048, 2048, 512, CLASSES)
WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(name="mnist-b128", sizes=(784, 512, 512, CLASSES), batch=128, rows=1 << 18),
        Workload(name="netflix-b256", sizes=_NETFLIX, batch=256, rows=1 << 18),
        Workload(name="netflix-b1024", sizes=_NETFLIX, batch=1024, rows=1 << 19),
        Workload(name="netflix-b8192", sizes=_NETFLIX, batch=8192, rows=1 << 20),
        Workload(
            name="wide-b8192", sizes=(2048, 8192, 8192, 2048, CLASSES), batch=8192, rows=1 << 17
        ),
        Workload(name="netflix-1m", sizes=_NETFLIX, batch=1024, rows=1_000_000),
        Workload(name="netflix-4m", sizes=_NETFLIX, batch=1024, rows=4_000_000),
    )
}


# Shapes and settings to which no kernel was tuned
OTHERS = {
    workload.name: workload
    for workload in (
        Workload(
            name="mnist-300x3-b64", sizes=(784, 300, 300, 300, CLASSES), batch=64, rows=1 << 17,
            optimizer="adam", dropout=0.5,
        ),
        Workload(name="wide-1000-b512", sizes=(2048, 4096, 4096, 1000), batch=512, rows=1 << 16),
        Workload(
            name="tiny-b16", sizes=(32, 64, 1), batch=16, rows=1 << 16, loss="squared",
            optimizer="adam",
        ),
        Workload(
            name="mnist-1000x4-b256", sizes=(784, *(1000,) * 4, CLASSES), batch=256, rows=1 << 17,
            dropout=0.2,
        ),
        Workload(name="small-2-b1024", sizes=(128, 256, 2), batch=1024, rows=1 << 20),
        Workload(
            name="small-1-b1024", sizes=(128, 256, 1), batch=1024, rows=1 << 20, loss="logistic"
        ),
        Workload(name="mnist-b100", sizes=(784, 512, 512, CLASSES), batch=100, rows=102_400),
        Workload(name="odd-b250", sizes=(513, 777, 333, 7), batch=250, rows=128_000),
    )
}  # fmt: skip
KNOWN = WORKLOADS | OTHERS


def make_rows(workload: Workload, rows: int, seed: int = 0) -> tuple[Array, Array]:
    """Return rows that can be learned, and their targets.

    The features are normally distributed float32 numbers. The targets are projections of them
    (squared), whether the first is positive (logistic), or the number of the largest. The first
    rows have the classes 0, 1, 2 and so on, so that each class has a row.
    """
    draw = np.random.default_rng(0)
    shape = (workload.sizes[0], workload.sizes[-1])
    projection = draw.standard_normal(shape, dtype=np.float32)
    distinct = min(rows, _DISTINCT_ROWS)
    draw = np.random.default_rng((1, seed))
    x = draw.standard_normal((distinct, workload.sizes[0]), dtype=np.float32)
    y = x @ projection
    if workload.loss == "logistic":
        y = (y[:, 0] > 0).astype(np.int32)
    elif workload.loss == "softmax":
        y = y.argmax(axis=1).astype(np.int32)
        y[: shape[1]] = np.arange(shape[1])[:distinct]  # each class has a row
    if rows > distinct:
        places = np.arange(rows) % distinct
        x, y = x[places], y[places]
    return x, y


def initial_weights(workload: Workload, seed: int = 0) -> list[tuple[Array, Array]]:
    """Return (weights (out, in), bias) of each layer for other libraries.

    The weights are uniform with variance 1/(3 in).
    """
    draw = np.random.default_rng(seed)
    layers = []
    for fan_in, fan_out in zip(workload.sizes[:-1], workload.sizes[1:], strict=True):
        bound = fan_in**-0.5
        weight = draw.uniform(-bound, bound, (fan_out, fan_in)).astype(np.float32)
        layers.append((weight, np.zeros(fan_out, np.float32)))
    return layers
