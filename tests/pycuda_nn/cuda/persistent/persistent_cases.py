"""Trainings of small networks, and their expected results."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy.session import NumpySession
from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.persistent.recognise import recognise
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.network import Network
from pycuda_nn.protocols import SgdHyper, Split, TrainingRecipe

Array = npt.NDArray[Any]
H200 = {"multiprocessors": 132, "shared_bytes": 232_448}
# Tolerances relative to numpy with the rounding of the kernel; to float64; of losses.
TWIN_RTOL = {"fp16": 1e-3, "bf16": 5e-3}
SMOOTH_RTOL = {"fp16": 2e-3, "bf16": 1e-2}
LOSS_RTOL = {"fp16": 1e-3, "bf16": 1e-2}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training on random rows with learnable labels."""

    sizes: tuple[int, ...]
    batch: int
    activation: str = "relu"
    precision: str = "bf16"
    nesterov: bool = False
    l2: float = 0.0
    steps: int = 4
    network: Network = field(init=False)
    recipe: TrainingRecipe = field(init=False)

    def __post_init__(self) -> None:
        hyper = SgdHyper(momentum=0.9, nesterov=self.nesterov)
        network = Network.from_sizes(sizes=self.sizes, activation=self.activation, loss="softmax")
        recipe = TrainingRecipe(optimizer=hyper, batch_size=self.batch, l2=self.l2, seed=0)
        object.__setattr__(self, "network", network)
        object.__setattr__(self, "recipe", recipe)

    def plan(self, **gpu: int) -> KernelPlan:
        facts: Any = SimpleNamespace(compute_capability=(9, 0), **(H200 | gpu))
        chosen = recognise(self.stack, self.recipe, self.precision, facts)
        assert isinstance(chosen, KernelPlan), chosen
        return chosen

    @property
    def stack(self) -> DenseStack:
        found = recognise_stack(self.network)
        assert isinstance(found, DenseStack), found
        return found

    def arrays(self) -> dict[str, Array]:
        """Return rows that are exact in the precision, their classes, an order, rates, params."""
        rng = np.random.default_rng(len(self.sizes))
        n = self.batch * (self.steps + 1)
        x = from_bits(to_bits(rng.normal(size=(n, self.sizes[0])), self.precision), self.precision)
        params = self.network.initial_params(1)
        biases = self.network.n_params - self.network.n_weights
        params[-biases:] = rng.normal(size=biases) / 10
        return {
            "x": x,
            "y": np.argmax(x @ rng.normal(size=(x.shape[1], self.sizes[-1])), 1).astype(np.int32),
            "order": rng.permutation(n).astype(np.int32),
            "rates": np.linspace(0.05, 0.03, self.steps).astype(np.float32),
            "params": params,
        }

    def padded_x(self, x: Array) -> Array:
        """Return the rows in the format of the kernel: bits, padded with zeros."""
        wide = np.zeros((len(x), ParameterLayout(self.network).sizes[0]), dtype=np.float32)
        wide[:, : x.shape[1]] = x
        return to_bits(wide, self.precision)


def to_bits(values: Array, precision: str) -> npt.NDArray[np.uint16]:
    """Return the values in 16 bits, rounded to nearest, ties to even."""
    if precision == "fp16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bits(bits: npt.NDArray[np.uint16], precision: str) -> npt.NDArray[np.float32]:
    if precision == "fp16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << 16).view(np.float32)


def float64_session(case: Case, arrays: dict[str, Array]) -> NumpySession:
    part = Split(x=arrays["x"], y=arrays["y"])
    return NumpySession(case.network, case.recipe, {"train": part}, arrays["params"], np.float64)


def rounded_gradient(case: Case, arrays: dict[str, Array]) -> Array:
    """Return the gradient of the first step, rounded where the kernel rounds."""
    network, rows = case.network, arrays["order"][: case.batch]
    slope = {"relu": lambda a: a > 0, "tanh": lambda a: 1 - a * a, "sigmoid": lambda a: a * (1 - a)}
    act = {
        "relu": lambda z: np.maximum(z, 0),
        "tanh": np.tanh,
        "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    }
    grad = np.zeros(network.n_params)
    weights = network.views(arrays["params"].astype(np.float64))
    inputs = [arrays["x"][rows].astype(np.float64)]
    for weight, bias in weights[:-1]:
        z = inputs[-1] @ _rounded(weight, case) + bias
        inputs.append(_rounded(act[case.activation](z), case))
    z = inputs[-1] @ _rounded(weights[-1][0], case) + weights[-1][1]
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(case.batch), arrays["y"][rows]] -= 1
    delta = _rounded(p, case)
    for layer in range(len(weights) - 1, -1, -1):
        (weight, _), (grad_weight, grad_bias) = weights[layer], network.views(grad)[layer]
        grad_weight[...] = inputs[layer].T @ delta / case.batch + case.l2 * weight
        grad_bias[...] = delta.sum(axis=0) / case.batch
        if layer:
            below = delta @ _rounded(weight, case).T
            delta = _rounded(below * slope[case.activation](inputs[layer]), case)
    return grad


def _rounded(values: Array, case: Case) -> Array:
    return from_bits(to_bits(values, case.precision), case.precision).astype(np.float64)


def errors(case: Case, got: Array, want: Array) -> list[float]:
    """Return the relative error of the weights and the bias of each layer."""
    return [
        float(np.linalg.norm(a - b) / np.linalg.norm(b))
        for pair in zip(case.network.views(got), case.network.views(want), strict=True)
        for a, b in zip(*pair, strict=True)
    ]


def check(case: Case, arrays: dict[str, Array], first: dict[str, Array], all_: Any) -> None:
    """Check the state after one step and after all (``params``, ``velocity``, ``losses``)."""
    layout = ParameterLayout(case.network)
    gradient = layout.compact(first["velocity"])
    assert max(errors(case, gradient, rounded_gradient(case, arrays))) < TWIN_RTOL[case.precision]
    session = float64_session(case, arrays)
    rows, rates = arrays["order"][: case.batch * case.steps], arrays["rates"]
    losses = session.run_epoch(rows[: case.batch], rates[:1])
    if case.activation != "relu":  # rounding can change the slope of a relu
        want = session.state()["velocity"]
        assert max(errors(case, gradient, want)) < SMOOTH_RTOL[case.precision]
    losses = np.append(losses, session.run_epoch(rows[case.batch :], rates[1:]))
    np.testing.assert_allclose(all_["losses"], losses, rtol=LOSS_RTOL[case.precision])
    for name in ("params", "velocity"):
        padded = all_[name]
        np.testing.assert_array_equal(layout.spread(layout.compact(padded)), padded, "padding")
