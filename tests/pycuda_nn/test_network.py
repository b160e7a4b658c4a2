from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import pycuda_nn as nn
from pycuda_nn.backends.numpy.session import NumpySession
from pycuda_nn.errors import CheckpointError, ConfigError
from pycuda_nn.layers import Activation, Dense, Dropout, Layer, Parameter, Softmax, Squared
from pycuda_nn.network import Network
from pycuda_nn.protocols import SgdHyper, Split, TrainingRecipe

Parts = tuple[nn.Dataset, nn.Dataset, nn.Dataset]


@dataclass(frozen=True)
class Scale(Layer):
    """Multiplies each column by a trained factor and adds a shift without decay."""

    columns: int

    def parameters(self):
        return Parameter((self.columns,), decay=False), Parameter((self.columns,))

    def initialise(self, params, uniform):
        params[1][...] = 1.0

    def forward(self, x, params, memory, bits):
        memory.kept["x"] = x
        return x * params[1] + params[0]

    def backward(self, delta, params, grads, memory, *, needed):
        np.sum(delta, axis=0, out=grads[0])
        np.sum(delta * memory.kept["x"], axis=0, out=grads[1])
        return delta * params[1]


MIXED = Network(
    (
        Activation("sigmoid"), Dense(5, 7), Activation("tanh"), Activation("relu"), Scale(7),
        Dropout(0.25), Dense(7, 6), Dense(6, 3), Activation("tanh"),
    ),
    loss=Softmax(),
)  # fmt: skip


def test_sizes_are_a_tuple_of_layers() -> None:
    made = Network.from_sizes((5, 4, 3), activation="tanh", loss="squared", dropout=0.5)
    layers = (Dense(5, 4), Activation("tanh"), Dropout(0.5), Dense(4, 3))
    assert made == Network(layers, loss=Squared())
    assert (made.inputs, made.outputs, made.widths) == (5, 3, (4, 4, 4, 3))
    assert (made.n_weights, made.n_params) == (32, 39)


def test_weights_come_before_biases_whatever_the_layers() -> None:
    flat = np.arange(MIXED.n_params)
    first, scale, *_ = MIXED.views(flat)
    np.testing.assert_array_equal(first[0].ravel(), np.arange(35))
    np.testing.assert_array_equal(scale[1], 35 + np.arange(7))
    np.testing.assert_array_equal(first[1], MIXED.n_weights + np.arange(7))
    np.testing.assert_array_equal(scale[0], MIXED.n_weights + 7 + np.arange(7))


def test_layers_that_do_not_fit_are_named() -> None:
    with pytest.raises(ConfigError, match=r"layer 2, Dense\(fan_in=5, fan_out=3\), .* 5 "):
        Network((Dense(4, 6), Dense(5, 3)))
    with pytest.raises(ConfigError, match="Dense"):
        Network((Activation("relu"),))


def test_the_gradient_of_any_tuple_is_the_slope_of_the_loss() -> None:
    rng = np.random.default_rng(0)
    rows = {"train": Split(x=rng.normal(size=(8, 5)), y=rng.integers(0, 3, 8).astype(np.int32))}
    hyper = SgdHyper(momentum=0.0, nesterov=False)
    recipe = TrainingRecipe(optimizer=hyper, batch_size=8, l2=0.0, seed=3)
    params = MIXED.initial_params(1) + rng.normal(size=MIXED.n_params) / 10
    session = NumpySession(MIXED, recipe, rows, params, np.float64)
    order, before = np.arange(8), rows["train"].x.copy()
    session.gradient(order)
    got, flat = session.grad(), session._params
    for place in range(flat.size):
        kept, losses = flat[place], []
        for step in (1e-6, -1e-6):
            flat[place] = kept + step
            losses.append(session.gradient(order))
        flat[place] = kept
        assert got[place] == pytest.approx((losses[0] - losses[1]) / 2e-6, rel=1e-4, abs=1e-7)
    session.evaluate("train")
    np.testing.assert_array_equal(rows["train"].x, before)


def test_any_tuple_trains_is_saved_and_resumes(parts: Parts, tmp_path) -> None:
    path = tmp_path / "mixed.npz"
    config, half = (nn.TrainConfig(epochs=n, lr=0.01, scale="none") for n in (6, 3))
    how = {"network": MIXED, "backend": "numpy"}
    whole = nn.train(config, *parts[:2], **how)
    nn.train(half, *parts[:2], checkpoint=path, **how)
    assert nn.load_model(path).network == MIXED
    resumed = nn.train(config, *parts[:2], checkpoint=path, resume=True, **how)
    np.testing.assert_array_equal(resumed.model.params, whole.model.params)
    assert whole.history[-1].train_loss < whole.history[0].train_loss
    with pytest.raises(CheckpointError, match=r"  - network: "):
        nn.train(config, *parts[:2], checkpoint=path, resume=True, backend="numpy")


def test_a_network_that_does_not_fit_the_data_is_refused(parts: Parts) -> None:
    other = Network.from_sizes((4, 3))
    with pytest.raises(ConfigError, match=r"\b4 inputs .*\b3 outputs.* 5 .*\b3\b"):
        nn.train(nn.TrainConfig(), parts[0], network=other, backend="numpy")
    with pytest.raises(ConfigError, match=r"loss = 'squared'.*3 classes"):
        nn.train(
            nn.TrainConfig(), parts[0], network=Network((Dense(5, 3),), loss=Squared()),
            backend="numpy",
        )  # fmt: skip
