"""The networks that the kernels support, and the reasons for the others."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

import numpy as np
import pytest

from pycuda_nn.backends.testing import sample_parts, sample_recipe
from pycuda_nn.cuda.backend import CudaBackend
from pycuda_nn.cuda.stack import DenseStack, NotCovered, recognise
from pycuda_nn.errors import ConfigError
from pycuda_nn.layers import ACTIVATIONS, Activation, Dense, Dropout, Layer, Softmax
from pycuda_nn.layers.loss import Loss
from pycuda_nn.network import Network

RELU, HALF = Activation("relu"), Dropout(0.5)


@dataclass(frozen=True)
class Twice(Layer):
    def forward(self, x, params, memory, bits):
        return 2 * x

    def backward(self, delta, params, grads, memory, *, needed):
        return 2 * delta


@dataclass(frozen=True)
class Hinge(Softmax):
    name = "hinge"
    kernels = None


@pytest.mark.parametrize("loss", ["softmax", "logistic", "squared"])
@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_every_network_of_the_settings_is_covered(loss, activation, dropout) -> None:
    for sizes in ((5, 1), (5, 4, 1), (5, 4, 3, 2, 1)):
        network = Network.from_sizes(sizes, activation=activation, loss=loss, dropout=dropout)
        stack = recognise(network)
        assert isinstance(stack, DenseStack)
        assert stack.sizes == sizes
        assert stack.loss is network.loss
        if len(sizes) > 2:
            assert (stack.activation, stack.dropout.probability) == (activation, dropout)


def test_a_stack_says_what_it_is() -> None:
    text = str(recognise(Network.from_sizes((5, 4, 3))))
    assert re.fullmatch(r"2 dense layers, softmax .*\b3 classes", text)
    small = Network.from_sizes((5, 2), loss="squared")
    assert re.fullmatch(r"1 dense layer, squared .*\b2 outputs", str(recognise(small)))


@pytest.mark.parametrize(
    ("layers", "loss", "reason"),
    [
        ((Dense(5, 4), Twice(), Dense(4, 3)), Softmax(), "layer 2, Twice(),"),
        (
            (Dense(5, 4), RELU, Dense(4, 4), Activation("tanh"), Dense(4, 3)),
            Softmax(),
            "layer 4 is Activation(name='tanh'), expected Activation(name='relu')",
        ),
        ((Dense(5, 4), RELU, Dense(4, 4), Dense(4, 3)), Softmax(), "layer 4 is Dense"),
        ((Dense(5, 4), RELU, HALF, Dense(4, 4), RELU, Dense(4, 3)), Softmax(), "layer 6 is Dense"),
        ((Dense(5, 3), RELU), Softmax(), "layer 2 is Activation(name='relu')"),
        ((HALF, Dense(5, 3)), Softmax(), "layer 1 is Dropout"),
        ((Dense(5, 3),), Hinge(), "'hinge'"),
    ],
    ids=str,
)
def test_another_network_is_named(layers: tuple[Layer, ...], loss: Loss, reason: str) -> None:
    found = recognise(Network(layers, loss=loss))
    assert isinstance(found, NotCovered)
    assert reason in found.reason


def test_an_activation_without_kernels_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = dataclasses.replace(ACTIVATIONS["relu"], kernel_number=None)
    monkeypatch.setitem(ACTIVATIONS, "plain", plain)
    found = recognise(Network((Dense(5, 4), Activation("plain"), Dense(4, 3))))
    assert isinstance(found, NotCovered)
    assert "'plain'" in found.reason


def test_the_backend_refuses_it_before_it_looks_for_a_gpu() -> None:
    network = Network((Dense(6, 4), Twice(), Dense(4, 3)))
    with pytest.raises(ConfigError, match=r"layer 2, Twice\(\), .*\n.*--backend numpy"):
        CudaBackend().open(network, sample_recipe(), sample_parts("softmax"), np.zeros(0))
