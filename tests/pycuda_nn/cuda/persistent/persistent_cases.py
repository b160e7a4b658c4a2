"""Trainings of small networks, and their expected results."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.backends.numpy.session import NumpySession
from pycuda_nn.cuda.layout import ParameterLayout
from pycuda_nn.cuda.persistent.plan import KernelPlan, partition
from pycuda_nn.cuda.persistent.recognise import recognise
from pycuda_nn.cuda.persistent.variant import Variant, variant_of
from pycuda_nn.cuda.stack import DenseStack
from pycuda_nn.cuda.stack import recognise as recognise_stack
from pycuda_nn.layers import Activation
from pycuda_nn.layers.memory import Memory
from pycuda_nn.network import Network
from pycuda_nn.protocols import AdamHyper, SgdHyper, Split, TrainingRecipe
from pycuda_nn.rng import Purpose, Stream, drop_bits

Array = npt.NDArray[Any]
H200 = {"multiprocessors": 132, "shared_bytes": 232_448}
# Tolerances relative to numpy with the rounding of the kernel; to float64; of losses.
TWIN_RTOL = {"float32": 1e-6, "tf32": 1e-3, "fp16": 1e-3, "bf16": 5e-3}
SMOOTH_RTOL = {"float32": 1e-6, "tf32": 2e-3, "fp16": 2e-3, "bf16": 1e-2}
LOSS_RTOL = {"float32": 3e-6, "tf32": 1e-3, "fp16": 1e-3, "bf16": 1e-2}
BETA1, BETA2, EPS = 0.9, 0.999, 1e-8
FIRST_STEP = 5  # steps before the epoch


@dataclass(frozen=True, kw_only=True)
class Case:
    """A training on random rows with learnable targets; ``optimizer`` as in ``Variant``."""

    sizes: tuple[int, ...]
    batch: int
    activation: str = "relu"
    precision: str = "bf16"
    loss: str = "softmax"
    optimizer: str = "momentum"
    dropout: float = 0.0
    l2: float = 0.0
    steps: int = 4
    network: Network = field(init=False)
    recipe: TrainingRecipe = field(init=False)

    def __post_init__(self) -> None:
        hyper: SgdHyper | AdamHyper = AdamHyper(beta1=BETA1, beta2=BETA2, eps=EPS)
        if self.optimizer != "adam":
            hyper = SgdHyper(momentum=0.9, nesterov=self.optimizer == "nesterov")
        network = Network.from_sizes(
            self.sizes, activation=self.activation, loss=self.loss, dropout=self.dropout
        )
        recipe = TrainingRecipe(optimizer=hyper, batch_size=self.batch, l2=self.l2, seed=7)
        object.__setattr__(self, "network", network)
        object.__setattr__(self, "recipe", recipe)

    def plan(self, **gpu: int) -> KernelPlan:
        facts: Any = SimpleNamespace(compute_capability=(9, 0), **(H200 | gpu))
        chosen = recognise(self.stack, self.recipe, self.precision, facts)
        assert isinstance(chosen, KernelPlan), chosen
        return chosen

    def divided(self, row_groups: int, column_groups: int) -> KernelPlan:
        """Return the plan with these groups on an H200."""
        shape = (-(-self.batch // row_groups // 16) * 16, row_groups, column_groups)
        made = partition(self.stack, self.variant, self.batch, shape, H200["shared_bytes"])
        assert made is not None
        return made

    @property
    def variant(self) -> Variant:
        return variant_of(self.stack, self.recipe, self.precision)

    @property
    def stack(self) -> DenseStack:
        found = recognise_stack(self.network)
        assert isinstance(found, DenseStack), found
        return found

    def arrays(self) -> dict[str, Array]:
        """Return rows that are exact in the precision, their targets, an order, rates, params."""
        rng = np.random.default_rng(len(self.sizes))
        n = self.batch * (self.steps + 1)
        x = from_bits(to_bits(rng.normal(size=(n, self.sizes[0])), self.precision), self.precision)
        params = self.network.initial_params(1)
        biases = self.network.n_params - self.network.n_weights
        params[-biases:] = rng.normal(size=biases) / 10
        targets = x @ rng.normal(size=(x.shape[1], self.sizes[-1]))
        rates = np.linspace(0.05, 0.03, self.steps)
        if self.optimizer == "adam":
            t = FIRST_STEP + 1.0 + np.arange(self.steps)
            rates = rates / 20 * np.sqrt(1 - np.float32(BETA2) ** t) / (1 - np.float32(BETA1) ** t)
        if not self.network.loss.of_classes:
            y = (targets / np.sqrt(x.shape[1])).astype(np.float32)
        elif self.loss == "logistic":
            y = (targets[:, 0] > 0).astype(np.int32)
        else:
            y = np.argmax(targets, 1).astype(np.int32)
        return {
            "x": x,
            "y": y,
            "order": rng.permutation(n).astype(np.int32),
            "rates": rates.astype(np.float32),
            "clock": np.array([0, FIRST_STEP], dtype=np.int64),
            "params": params,
        }

    def padded_x(self, x: Array) -> Array:
        """Return the rows in the format of the kernel: bits, padded with zeros."""
        wide = np.zeros((len(x), ParameterLayout(self.network).sizes[0]), dtype=np.float32)
        wide[:, : x.shape[1]] = x
        return to_bits(wide, self.precision)


def short(case: Case) -> str:
    """Return a name with what differs from the defaults."""
    sizes = "-".join(map(str, case.sizes))
    words = [sizes, f"b{case.batch}", case.precision, case.activation, case.loss, case.optimizer]
    return " ".join([*words, *([f"dropout {case.dropout}"] if case.dropout else [])])


def to_bits(values: Array, precision: str) -> Array:
    """Return the bits of the values in this precision, rounded to nearest, ties to even."""
    if precision == "fp16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    if precision == "float32":
        return bits
    dropped = {"tf32": 13, "bf16": 16}[precision]
    high = (bits + ((1 << dropped - 1) - 1) + (bits >> dropped & 1)) >> dropped
    return high << dropped if precision == "tf32" else high.astype(np.uint16)


def from_bits(bits: Array, precision: str) -> npt.NDArray[np.float32]:
    if precision == "fp16":
        return bits.view(np.float16).astype(np.float32)
    return (bits.astype(np.uint32) << (16 if precision == "bf16" else 0)).view(np.float32)


def numpy_session(case: Case, arrays: dict[str, Array], dtype: Any = np.float64) -> NumpySession:
    part = Split(x=arrays["x"], y=arrays["y"])
    session = NumpySession(case.network, case.recipe, {"train": part}, arrays["params"], dtype)
    session.load_state({**session.state(), "step": np.array(FIRST_STEP)})
    return session


def session_rates(case: Case, rates: Array) -> Array:
    """Return the rates without the bias corrections of Adam, which the session adds."""
    if case.optimizer != "adam":
        return rates
    t = FIRST_STEP + 1.0 + np.arange(len(rates))
    corrections: Array = np.sqrt(1 - np.float32(BETA2) ** t) / (1 - np.float32(BETA1) ** t)
    return rates / corrections


def rounded_gradient(case: Case, arrays: dict[str, Array]) -> Array:
    """Return the gradient of the first step, rounded where the kernel rounds."""
    network, rows = case.network, arrays["order"][: case.batch]
    activation, dropout = Activation(case.activation), case.stack.dropout
    bits = Stream(case.recipe.seed, Purpose.DROPOUT)
    grad = np.zeros(network.n_params)
    weights = network.views(arrays["params"].astype(np.float64))
    inputs = [arrays["x"][rows].astype(np.float64)]
    memories, factors = [], []
    for number, (weight, bias) in enumerate(weights[:-1]):
        z = inputs[-1] @ _rounded(weight, case) + bias
        memories.append(Memory(np.float64))
        a = activation.forward(z, (), memories[-1], None)
        factor = np.ones(a.shape)
        if case.dropout:
            drawn = drop_bits(bits, FIRST_STEP, number, a.size).reshape(a.shape)
            factor = (drawn >= dropout.threshold) * dropout.scale
        factors.append(factor)
        inputs.append(_rounded(a * factor, case))
    z = inputs[-1] @ _rounded(weights[-1][0], case) + weights[-1][1]
    delta = _rounded(_output_gradient(case, z, arrays["y"][rows]), case)
    for layer in range(len(weights) - 1, -1, -1):
        (weight, _), (grad_weight, grad_bias) = weights[layer], network.views(grad)[layer]
        grad_weight[...] = inputs[layer].T @ delta / case.batch + case.l2 * weight
        grad_bias[...] = delta.sum(axis=0) / case.batch
        if layer:
            below = (delta @ _rounded(weight, case).T) * factors[layer - 1]
            memory = memories[layer - 1]
            delta = _rounded(activation.backward(below, (), (), memory, needed=True), case)
    return grad


def _output_gradient(case: Case, z: Array, y: Array) -> Array:
    gradient = z.copy()
    case.network.loss.gradient(gradient, y, Memory(np.float64))
    return gradient * len(y)


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
    """Check the state after one step and after all (``params``, moments, ``losses``)."""
    layout = ParameterLayout(case.network)
    gradient = layout.compact(first["first"])
    if case.optimizer == "adam":
        check_adam(arrays["rates"][0], layout.spread(arrays["params"]), first)
        gradient = gradient / np.float32(1 - np.float32(BETA1))
    assert max(errors(case, gradient, rounded_gradient(case, arrays))) < TWIN_RTOL[case.precision]
    session = numpy_session(case, arrays)
    rows, rates = arrays["order"][: case.batch * case.steps], session_rates(case, arrays["rates"])
    losses = session.run_epoch(rows[: case.batch], rates[:1])
    if case.activation in ("tanh", "sigmoid", "softplus", "gelu"):  # smooth: no slope jumps
        want = first_moments(case, session)
        got = layout.compact(first["first"])
        assert max(errors(case, got, want)) < SMOOTH_RTOL[case.precision]
    losses = np.append(losses, session.run_epoch(rows[case.batch :], rates[1:]))
    np.testing.assert_allclose(all_["losses"], losses, rtol=LOSS_RTOL[case.precision])
    for name in ("params", "first", "second"):
        padded = all_[name]
        np.testing.assert_array_equal(layout.spread(layout.compact(padded)), padded, "padding")


def first_moments(case: Case, session: NumpySession) -> Array:
    return session.state()["m" if case.optimizer == "adam" else "velocity"]


def check_float32(case: Case, arrays: dict[str, Array], first: dict[str, Array]) -> None:
    """Check that a step in float32 is about as accurate as one of numpy in float32."""
    sessions = [numpy_session(case, arrays, dtype) for dtype in (np.float64, np.float32)]
    for session in sessions:
        session.run_epoch(arrays["order"][: case.batch], session_rates(case, arrays["rates"])[:1])
    want, numpy = (first_moments(case, session) for session in sessions)
    got = ParameterLayout(case.network).compact(first["first"])
    assert max(errors(case, got, want)) < 2 * max(errors(case, numpy, want))


def check_adam(rate: float, before: Array, after: dict[str, Array]) -> None:
    """Check the first step of Adam, given the first moment."""
    gradient = after["first"] / (1 - np.float64(np.float32(BETA1)))
    second = (1 - np.float64(np.float32(BETA2))) * gradient**2
    np.testing.assert_allclose(after["second"], second, rtol=1e-4, atol=1e-30)
    wanted = before - rate * after["first"] / (np.sqrt(second) + EPS)
    np.testing.assert_allclose(after["params"], wanted, rtol=1e-5, atol=1e-7)
